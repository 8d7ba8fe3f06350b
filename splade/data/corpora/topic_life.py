"""What people write about health, travel and food: one half of the material of the topics.

`= topic | case`, then lines of alternatives between ` / `: `about` are noun phrases, `fact` whole clauses that stand in
any order, `ask` what one may want to know, `do` what one may advise, `side` where one may be when the matter is
another.
"""

from __future__ import annotations

LIFE = """
= health | knee
about: my aching knee / the exercises for a worn knee / a clinic for knees
fact: my knee [clicks|aches] whenever I take the stairs / the scan showed no tear, only a worn [joint|cartilage] / the physiotherapist gave me three stretches and a rubber band / the pain comes back [after a long day at the desk|whenever the weather turns] / the swelling went down after a week of ice
ask: how long a worn knee takes to heal / whether an injection into the joint is worth the risk / why a knee should hurt more at night
do: keep the joint moving, but gently / get a second opinion before any operation / do the dull stretches every day
side: in the waiting room of the knee clinic / while the physiotherapist bent my leg / during my twenty minutes of stretches

= health | sleep
about: my sleepless nights / a clinic for people who cannot sleep / what caffeine does to the heart
fact: I lie awake [until three|for hours] and hear every bus / the doctor asked about worry before she asked about pills / a week without coffee gave me a headache and [one more hour of sleep|no more sleep] / they wired my head to a machine to count how often I woke / my heart races as soon as I put out the light
ask: whether the pills for sleep lose their power / how much rest a woman of seventy needs / what else can calm a racing heart
do: keep the same bedtime, even on Sundays / see a doctor if you stop breathing in your sleep / leave the bed when you cannot sleep
side: in the night I spent at the sleep clinic / after another night awake / while a nurse stuck wires to my head

= health | virus
about: the winter virus / the new vaccine / a fever that would not go
fact: half the ward came down with the same virus / the fever broke on the fifth day / the nurse said that the vaccine [arrives in October|has few side effects] / my chest rattled for [three weeks|most of November] / the doctor would not give me antibiotics, since they do nothing against a virus
ask: how long one can infect others after a fever / whether a vaccine from last year still protects / when a cough should be looked at
do: wash your hands and stay in bed / have the vaccine before the winter / drink plenty and wait
side: in bed with the winter virus / in the line for the vaccine / while my fever was at its worst

= health | pressure
about: my blood pressure / the new tablets for the heart / a cuff that measures the pulse
fact: the doctor doubled the dose in [May|March] / one tablet makes me dizzy, the other makes me cough / my pressure is high at the surgery and [low|normal] in my own kitchen / the pharmacist found that two of my tablets do not go together / she listened to my heart for a long minute and said nothing
ask: whether these tablets may be stopped in summer / why my pressure is higher in the morning / what a pulse of fifty means
do: write the readings down for a month / never stop the tablets without asking / sit still for five minutes before you measure
side: at the pharmacy, waiting for my tablets / with the cuff around my arm / at my checkup

= health | allergy
about: my hay fever / an allergy test / the spray for my nose
fact: my eyes itch from April to July / forty needles in my arm showed that it is [birch|grass] and nothing else / the spray helps for an hour and then my nose bleeds / my daughter came up in a rash after [a single nut|one bite of a peanut] / the specialist has a waiting list of [five|seven] months
ask: whether an allergy can come at sixty / how the treatment with drops works / which of the sprays does not make one drowsy
do: start the treatment before the spring / carry the injection everywhere / shower before bed when the air is full of pollen
side: at the allergy specialist / between two fits of sneezing / while I waited for a rash to appear

= health | teeth
about: the crown on my tooth / a visit to the dentist / my swollen gums
fact: the dentist found [two holes|a crack] that I had never felt / my gums bleed whenever I brush / the root had to come out in three pieces / my jaw was numb until supper / the crown fell out and I put it back with my finger
ask: whether a tooth without a root can still hurt / how often the gums should be cleaned / what can be done about grinding at night
do: brush for two minutes and forget the mouthwash / go before it hurts / have the crown made of gold
side: in the chair of my dentist / with half my face numb / on the morning my crown fell out

= health | back
about: my bad back / the stretches for the spine / a massage that helps
fact: my back locked when I bent down for a sock / the doctor tapped along my spine and sent me [to a class|for a scan] / the muscles beside the spine are weak, I was told / sitting is worse for me than lifting / the painkillers only made my stomach ache
ask: whether rest makes a bad back worse / how one gets out of bed with such a spine / why the pain moves down into the leg
do: walk as soon as you can stand / learn to lift with your legs / put the screen at the height of your eyes
side: flat on the floor with my bad back / during my class for bad backs / while someone pressed on my spine

= health | diet
about: my cholesterol / the diet the doctor gave me / losing weight after fifty
fact: my cholesterol is high although I am thin / the nurse weighs me every [Monday|Friday] and says nothing / the doctor crossed out butter, salt and [wine|cheese] / I lost four kilos and then three of them came back / my blood sugar is on the edge, she says
ask: whether eggs are bad for the heart after all / how much weight one may lose in a month / what else lowers the sugar in the blood
do: change one meal at a time / have your blood tested before you worry / weigh yourself only once a week
side: on the scales at the surgery / on the day of my blood test / while the nurse looked for a vein

= travel | connection
about: a missed connection / the long wait at the airport / my lost suitcase
fact: the first flight left late and the second one left [without us|on time] / we slept on our bags under the departure board / the desk closed just as we reached it / my suitcase went to [Lima|Oslo] and I did not / the airline gave us a voucher for a sandwich
ask: how much time one needs to change planes / whether the airline must pay for a hotel / where lost suitcases end up
do: take the early flight / keep a toothbrush in your pocket / photograph your luggage before you hand it over
side: at the gate, with two hours to wait / on the flight home / while we looked for my suitcase

= travel | hotel
about: a small hotel by the harbor / our room with a view / the guesthouse on the square
fact: the view in the brochure belonged to the hotel [next door|across the street] / our host carried the bags up four flights of stairs / the room looked out over the roofs and the [cathedral|sea] / breakfast was served in a garden full of cats / they had never heard of our booking
ask: whether one can still find a room there in August / how far it is from the station to the old town / which side of the hotel is quiet
do: ask for a room at the back / book by telephone / stay in the old town
side: on the balcony of our hotel / at breakfast in the guesthouse / on our last night away

= travel | ferry
about: the ferry to the islands / a week on an island without cars / the old port
fact: the ferry runs twice a week when the sea is calm / the whole port was asleep when we tied up / we watched [dolphins|flying fish] from the upper deck / there is one road on the island and one bus on it / the captain let the children hold the wheel
ask: whether the ferry still runs in October / how long the crossing takes / where one can leave a car by the port
do: bring a warm jacket for the deck / sail in June / take the slow boat
side: on the deck of the ferry / in the old port / on an island without a single car

= travel | hut
about: the path over the pass / a night in a mountain hut / our walk from valley to valley
fact: the path climbs for [five|six] hours and the hut is behind the last bend / eleven strangers snored in one room / we crossed two glaciers behind a guide / the fog lifted and there were three countries below us / the signposts count in hours, not in miles
ask: whether the huts are open in May / how steep the path to the pass is / which of the two valleys is the lovelier
do: set out at dawn / reserve a bed in the hut / carry half of what you packed
side: in a hut above the clouds / on the way down from the pass / with a map on my knees

= travel | border
about: a visa that came too late / the stamp in my passport / the border crossing at night
fact: the consulate wanted a photograph with [both ears|no smile] / we were taken off the bus and lined up beside the road / my passport had five months left and they wanted six / the officer asked why we had come and smiled at the answer / the visa came on the morning of our departure
ask: whether the visa can be bought on arrival / how long a passport must be valid / which crossing has the shorter line
do: begin with the visa two months ahead / keep a copy of the passport in your shoe / stay polite at the desk
side: in line at the consulate / at the border, in the middle of the night / with my passport in a stranger's hand

= travel | market
about: a walk through the spice market / our guide in the old town / the city with the blue doors
fact: the guide led us from stall to stall and knew [every cook|every cat] by name / we got lost in the lanes and were glad of it / at noon the whole city goes to sleep / an old man drew us a map on a paper bag / the night bus back to our guesthouse was full of chickens
ask: which month is best for that city / whether one needs a guide in the lanes / how one gets from the airport to the market
do: get lost on purpose / hire a guide for the first day / go before the tour buses arrive
side: in the lanes of the spice market / behind a guide with a yellow umbrella / on a bus full of chickens

= travel | insurance
about: our canceled cruise / insurance for a journey / a trip that cost twice what it should
fact: the insurance pays for a broken leg but not for [a storm|a strike] / we canceled the cruise two weeks before it sailed / the tour company answered after the third letter / the coach turned back because of snow and we saw no coast at all / the brochure said nothing about the extra charge for the cabin
ask: whether a canceled cruise is paid back / how one insures a journey of three months / what happens when the tour company goes under
do: read the small print before you pack / travel with your own plan / keep every ticket
side: on a coach in the snow / in the cabin of our cruise ship / on the third day of our tour

= travel | night train
about: the night train to the coast / a bunk in a sleeping car / the longest railway I know
fact: we shared the compartment with a choir / the train stood for two hours [outside a tunnel|in a wood] / the attendant woke us with tea and the sea was at the window / the platform was so short that we had to jump / there is no dining car beyond the border
ask: whether the upper bunk is worth it / how early one must book the night train / what there is to see where the line ends
do: take the lower bunk / bring your own supper and a book / get out at the little station in the hills
side: in the corridor of the night train / on a platform in the rain / in the upper bunk

= food | sourdough
about: my sourdough / a loaf with a proper crust / the jar in which my dough lives
fact: the dough rose over the edge of the bowl while we slept / the crust sings when it comes out of the oven / my starter is [eleven|four] years old and smells of apples / rye makes it sour and slow / the loaf was flat as a plate
ask: how wet the dough should be / whether one can freeze a starter / why my loaf cracks along the side
do: let it cool before you cut it / bake it darker than you dare / weigh the water
side: with both hands in the dough / while the loaf was in the oven / waiting for the crust to cool

= food | stock
about: a soup of roasted onions / my grandmother's stock / a pot that simmers all day
fact: the bones should be roasted until they are brown / she put the onion in with its skin, for the color / the stock must tremble and never boil / I burned the onions and the soup was better for it / a spoon of vinegar at the end wakes it up
ask: whether stock made from peels is worth it / how long bones should simmer / what can save a soup with too much salt
do: skim it and leave it alone / salt it at the very end / add the leeks last
side: over a pot of simmering bones / in my grandmother's kitchen / in tears over the onions

= food | menu
about: the new menu at the corner / a dinner of five courses / the fish they serve on Fridays
fact: the third course was a single [carrot|beet], and it was perfect / the server knew where every oyster came from / the sauce had been reduced until it shone / they grill the fish over vine wood / dessert was a pear in red wine with a crust of nuts
ask: what goes into such a sauce / which wine suits a dish of eel / how they keep the fish so moist
do: order the fish / leave room for the pear / have the small menu
side: over the third course / while our server poured the wine / between the oysters and the pear

= food | cookies
about: ginger cookies / my aunt's almond cake / the cookies for our fair
fact: the butter must be soft but not melted / the cookies ran together into one large [map|pancake] / a pinch of salt and a night in the cold make all the difference / the cake is better on the third day / she beats the eggs by hand until they are pale
ask: whether honey can replace the sugar / why the cake sinks in the middle / how thin one should roll the dough
do: chill the dough overnight / take them out while they look raw / double the ginger
side: with flour up to my elbows / while the cookies were in the oven / between two trays of cookies

= food | less salt
about: cooking without salt / a soft supper for my father / a stew of lentils and lemon
fact: lemon and toasted seeds do what salt used to do / he may have no salt, so I roast the tomatoes until they are [black|sweet] / the lentils take an hour and a bay leaf / herbs go in when the heat is off / smoked paprika fools everybody at our table
ask: what to do with a bag of lentils / which spices make up for salt / how one thickens a stew without cream
do: toast the spices first / be generous with the lemon / use twice the herbs
side: while I chopped the herbs for my father / over a bowl of lentils / with lemon in a cut on my thumb

= food | noodles
about: the noodles from the stall by the bridge / broth with chili and lime / dumplings made by hand
fact: she pulls the noodles by hand and slaps them on the [counter|board] / the broth is cooked for two days / three kinds of chili go in, and the green one bites / the dumplings are folded nineteen times / I have tried it at home and only the lime was right
ask: where one finds such flat noodles / how the broth becomes so clear / which flour dumplings need
do: eat them standing up / make the broth a day ahead / ask for the green chili
side: over a bowl of noodles / while she folded our dumplings / with tears of chili in my eyes

= food | porridge
about: porridge with salt / a breakfast that lasts until two / oats soaked overnight
fact: oats should be toasted in a dry pan / I stir it with the wrong end of a wooden spoon, as we always did / a banana and a spoon of peanut butter go in at the end / the runners at my table eat it by the bucket / milk burns, water does not
ask: whether rolled oats are as good as cut ones / how one keeps milk from burning / what else can go into a breakfast for twelve
do: soak the oats overnight / use more water than you think / put cream on it and be happy
side: over my porridge / while the oats were soaking / at breakfast, with the spoon in my hand

= food | oven
about: roast chicken / the new oven in our kitchen / potatoes with a crust
fact: the skin must be dry before it goes in / the timer beeps and the chicken is still [pink|raw] at the bone / potatoes want a hot tray and plenty of fat / the left side of the oven burns everything / an hour of rest on the board keeps the juice in
ask: how hot the oven should be for a whole duck / whether one should turn the bird / which potatoes make the best crust
do: trust the smell, not the timer / dry the bird overnight / shake the potatoes in the pot
side: waiting for a chicken to brown / with my head in the oven / over a tray of burnt potatoes
"""
