"""Names for the tagging corpus: plain ones, and ambiguous ones that name several kinds of thing; `_` is a space.

The people, firms and clubs are made up by combination; places are real or invented.
"""

from __future__ import annotations


def _list(text: str) -> list[str]:
    return text.split()


FIRST = _list("""
Tomas Ingrid Amara Leopold Yusuf Petra Danilo Miriam Kofi Annika Rashid Beatriz Oskar Nadia Hamish Lucia Emeka Solveig
Pavel Farida Gareth Imelda Jonas Keiko Lorenzo Maeve Nikolai Odile Priya Quentin Rosalind Stefan Tamsin Ulrich Valentina
Wanda Xavier Yolanda Zoltan Agnes Bartholomew Cecily Dmitri Esther Fergus Gwen Henrik Isolde Joaquin Katarina Lionel
Marguerite Nuala Olga Piotr Ramona Silas Thandiwe Ursula Vikram Winifred Bela Clement Dorothea Edgar
""")

LAST = _list("""
Okafor Lindqvist Marchetti Novak Haddad Brennan Castellano Duarte Eriksen Fontaine Gruber Hollis Ivanova Jankowski Kimura
Larsson Mbeki Nakagawa Oduya Pellegrini Quigley Rasmussen Sorensen Tanaka Underhill Vasquez Whitlock Yamamoto Zielinski
Abernathy Bellweather Crowther Dunmore Esterhazy Farrow Gallagher Hathaway Ibsen Jorgensen Kowalczyk Lockhart Montague
Northcott Oyelaran Pemberton Rooke Satterthwaite Thistlewood Ulvaeus Vanderlin Winslow Yardley Zimmerman Achterberg
Bhattacharya Cavendish Delacroix Egerton Fairweather Goldsworthy Hargreave Inverarity Jessop Kettleby Lomax Medina
""")

TOWN = _list("""
Rotterdam Valparaiso Gdansk Bergen Montevideo Kampala Turin Antwerp Salford Odense Tallinn Malaga Ipswich Quito Leipzig
Nantes Tampere Coventry Durban Osaka Pilsen Galway Zagreb Lausanne Penzance Windhoek Bilbao Kaunas Dundee Fresno Halifax
Inverness Jaipur Kharkiv Lagos Merida Norwich Oporto Perpignan Rosario Stavanger Toledo Uppsala Valencia Wakefield
Yokohama Zaragoza Aberystwyth Brno Carlisle Dresden Esbjerg Fremantle Groningen Harbin Innsbruck Jena Kilkenny Limoges
Thornbury Eastmere Kelworth Hallow Ferry-Hill Ottersby Cragmouth Wendle Skelby Barrowford
Cape_Town San_Sebastian Port_Ellery Saint_Maren New_Orleans Buenos_Aires Little_Wendle Santa_Fe Las_Palmas Monte_Carlo
Upper_Thorn Long_Marsh
""")

COUNTRY = _list("""
Norway:Norwegian Kenya:Kenyan Chile:Chilean Estonia:Estonian Vietnam:Vietnamese Uruguay:Uruguayan Ghana:Ghanaian
Latvia:Latvian Peru:Peruvian Iceland:Icelandic Malaysia:Malaysian Croatia:Croatian Senegal:Senegalese Denmark:Danish
Bolivia:Bolivian Finland:Finnish Nepal:Nepalese Portugal:Portuguese Zambia:Zambian Slovenia:Slovenian Ecuador:Ecuadorian
Ireland:Irish Mongolia:Mongolian Belgium:Belgian Tunisia:Tunisian Austria:Austrian Botswana:Botswanan Hungary:Hungarian
Indonesia:Indonesian Scotland:Scottish Bulgaria:Bulgarian Morocco:Moroccan Sweden:Swedish Colombia:Colombian
Namibia:Namibian Lithuania:Lithuanian Switzerland:Swiss Argentina:Argentine Thailand:Thai Canada:Canadian South_Africa:South_African
Costa_Rica:Costa_Rican Sri_Lanka:Sri_Lankan
""")

REGION = _list("""
Tuscany Lapland Patagonia Brittany Andalusia Bohemia Galicia Jutland Flanders Saxony Silesia Anatolia Cornwall Provence
Umbria Carinthia Karelia Normandy Transylvania
""")

RIVER = _list("""
Rhine Danube Mekong Zambezi Volga Orinoco Loire Severn Tagus Vistula Elbe Murray Niger Dnieper Ebro Oder
""")

FIRM = _list("""
Corvane Tessaly Brightwell Norvik Palanta Quillon Stellmar Arkwright Dovecote Fenwick Glasnock Havermore Ironbridge
Juniper Kestrel Lumenor Maplethorpe Nimbel Ostara Pinnock Ridgeline Saltmarsh Tarnwell Umbra Verdant Wexcombe Yarrow
Zephyrine Calloway Driftwood Emberly Foxglove Gantry Hollowell Inkwell Larkfield
""")

EVENT = _list("""
Harvest Lantern Coast Copper Meadow Heather Winter Midsummer Amber Northern Highland Lakeside Orchard Silver Vineyard
Continental Riverside Golden Maritime Jubilee
""")

WORK = _list("""
Saltwater_Hymns A_House_of_Paper Twelve_Winters Nobody's_Orchard Lanterns_at_Noon Blue_Ferry The_Glass_Orchard
Letters_to_a_Tailor The_Quiet_Harbor A_Field_of_Clocks Wolves_in_Summer Under_the_Tin_Roof The_Beekeeper's_Son
Seven_Bridges Paper_Moons Before_the_Thaw The_Last_Lighthouse Cinders Halfway_to_Morning Postcards_from_Nowhere
""")

# The same surfaces as different things.
AMBIGUOUS: dict[str, list[str]] = {
    "first": _list("""
        Jordan Paris Victoria Florence Sydney Austin Charlotte Madison Chelsea Georgia Virginia Chester Adelaide Verona
        Siena Savannah Orlando Carolina Lourdes May April June Grace Hope Rose Will Mark Grant Bill Frank Faith Dawn
    """),
    "last": _list("""
        Washington Lincoln Houston Kent Bolton Preston Warwick Lancaster York Wells Burton Bradford Darwin Hamilton
        Wellington Jackson Nelson Hastings Kingston London Ford Morgan Harlow Marlow Penrose Jordan May March Rose Grant
        Cook Baker Page Rich Brooks Woods Park Price West
    """),
    "town": _list("""
        Paris Victoria Florence Sydney Austin Charlotte Madison Chelsea Chester Adelaide Verona Siena Savannah Orlando
        Lourdes Washington Lincoln Houston Bolton Preston Warwick Lancaster York Wells Burton Bradford Darwin Hamilton
        Wellington Jackson Nelson Hastings Kingston London Harlow Marlow Bath Reading Nice Cork Split Mobile Sale Deal
    """),
    "country": ["Jordan:Jordanian", "Georgia:Georgian", "Turkey:Turkish", "Chad:Chadian"],
    "region": ["Virginia", "Carolina", "Kent", "Georgia"],
    "river": ["Amazon", "Orange", "Jordan"],
    "club": _list("""
        Chelsea Bolton Preston Lincoln Chester York Bradford Burton Hamilton Kingston Verona Siena Nice Reading Bath
        Wellington Lancaster Houston Charlotte Orlando Florence Jackson Nelson Warwick Cork Split
    """),
    "firm": _list("""
        Amazon Ford Morgan Harlow Marlow Penrose Hastings Kent Warwick Wells Lincoln Nelson Burton Preston Victoria Beacon
        Orbit Orange Compass Granite Meridian Harvest Summit Anchor Target
    """),
    "event": [
        "Lincoln",
        "Preston",
        "Victoria",
        "Hastings",
        "Harlow",
        "Chelsea",
        "Amazon",
        "Darwin",
        "Summit",
    ],
    "work": [
        "Victoria",
        "Amazon",
        "Florence",
        "Reading_Lessons",
        "Washington_Square_Blues",
        "Chelsea_Mornings",
        "Hope",
    ],
}

FIRM_ENDINGS = (
    "",
    "",
    "",
    "Systems",
    "Foods",
    "Shipping",
    "Bank",
    "Motors",
    "Energy",
    "and Sons",
    "Airlines",
    "Group",
)
CLUB_ENDINGS = ("", "", "", "Rovers", "United", "City", "Wanderers", "Athletic", "Hawks", "Tigers")
BODIES = (
    "University of {town}", "{town} University", "{town} City Council", "{town} General Hospital", "{town} Opera",
    "Ministry of [Health|Finance|Culture|Transport]", "Institute of [Marine Research|Statistics|Public Health]",
    "{town} Police Department", "Museum of [Modern Art|Natural History]", "{firm} Foundation", "{town} Chamber of Commerce",
    "National Union of [Teachers|Farmers|Nurses]",
)  # fmt: skip
EVENT_ENDINGS = ("Cup", "Open", "Marathon", "Games", "Prize", "Festival", "Trophy", "Championship", "Regatta")
