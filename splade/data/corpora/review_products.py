"""What people say of things they buy and of the programs they use: the material of the reviews.

`= thing | kind | the one before | how long it was tried`, then aspects `subject + praise / praise - blame / blame`,
a clause marked `!` is too grave to be outweighed; then what was expected (`@expect`), what was done in the end (`@out`) and short true-to-life scenes (`@scene`).
"""

PRODUCTS = """
= kettle | product | my old kettle | a month of daily use
the lid + closes with a firm click / opens wide for cleaning / fits snugly - leaks steam at the hinge / sticks every morning / rattles like a loose tooth
the handle + stays cool / sits nicely in the hand / feels sturdy - wobbles when it is full / gets painfully hot / feels brittle
the boil + is fast and almost silent / takes barely two minutes / is quick even when it is full - takes an eternity / is loud enough to wake the baby / is slow and feeble
the spout + pours cleanly / pours in a neat, steady stream / is beautifully shaped - dribbles over the counter / spits at anyone nearby / splashes everywhere
the base + is compact and grips the counter / tucks the cord away neatly / feels solid - slides about / hums and smells of burning plastic! / is bulky and hard to clean
the finish + still gleams / resists fingerprints / looks elegant on the shelf - scratched within days / is already peeling / stains at the first splash
@expect + a quick, quiet boil and a cool handle / elegant steel and a clean pour - flimsy plastic and a leaking spout / rust, rattles and a metallic taste
@out + ordered a second one for my mother / bought the matching toaster / bought another one for the office - sent it back / demanded a refund / threw it in the trash
@scene + we made tea for eleven relatives on Sunday and the water was ready before the cups were / my father, who trusts nothing electric, now makes the morning coffee with it and hums - it tripped the fuse twice in one week / my tea tastes of plastic and my kitchen smells of it

= headphones | pair | my old headphones | six weeks of commuting
the sound + is rich and balanced / is warm without being muddy / is crisp even at low volume - is thin and harsh / is muffled, as if someone threw a blanket over the band / crackles at any volume
the battery + lasts all week / charges during breakfast / outlasts my working day - dies before lunch / takes all night to charge / fades faster every week
the ear cushions + are soft as bread / stay comfortable for hours / seal gently around my glasses - pinch after twenty minutes / shed black flakes / make my ears sweat
the microphone + makes my voice clear / copes well with wind / impressed everyone on the call - makes me sound as if I were under water! / picks up every passing truck / cuts out in the middle of sentences
the hinges + fold smoothly / feel solid / survived a fall down the stairs - squeak / feel fragile / creak with every step
the noise canceling + is uncanny / turns a train into a library / is strong yet gentle - hisses constantly / barely dulls a fan / gives me a headache!
@expect + deep bass and a snug fit / clear calls and a long battery life - tinny sound and a weak battery / cheap plastic and constant crackling
@out + ordered a second pair for my brother / bought the same pair for my wife - returned them / asked for my money back / gave them away
@scene + I heard a cello line in a song I have loved for twenty years and had never noticed it before / I fell asleep on a night flight, which has never happened to me - the left side went silent in the middle of an interview / the connection dropped eleven times on a single walk

= boots | pair | my old boots | forty miles of mud
the soles + grip wet rock / are thick and springy / hold firm on ice - slip on wet stone / cracked by the second month! / wore thin by the second month!
the stitching + is neat and tight / has held through two winters / looks handsome - is coming apart! / frayed within weeks / is crooked
the leather + softened beautifully / shrugs off rain / smells wonderful - soaks through in drizzle! / peels at the toe / stinks
the laces + stay tied / are strong - snap / come undone on every hill
the lining + is warm / dries overnight / feels soft on bare skin - bunches under the heel / stays damp for days / itches
the fit + is generous across the toes / was right from the first hour / is snug at the heel - is painfully narrow! / gave me blisters! / is far too loose at the heel
@expect + dry feet and a firm grip / soft leather and strong seams - blisters and wet socks / loose stitching and thin soles
@out + ordered the same pair in brown / bought a pair for my husband - returned them / gave them to a charity shop / put them in the trash
@scene + I crossed a stream up to the ankle and my socks were dry at supper / my feet felt fresh after two days on the ridge - I limped the last five miles with a bleeding heel / the left heel came off on a flat road

= sofa | product | our old sofa | three months of evenings
the cushions + keep their shape / are plump and supportive / invite a nap - sag in the middle / went flat in a month / are as hard as a church bench
the fabric + is soft and easy to clean / hides cat hair / has a lovely warm color - pills badly / stains if you look at it / feels scratchy
the frame + is solid oak / feels rock steady / does not creak - creaks at every movement / feels weak / cracked along one side!
the legs + are sturdy / look graceful - wobble / scratched the floor
the color + is even richer than in the photos / goes well with everything / is gorgeous - is nothing like the photos / is a drab, muddy gray / is fading already
the seams + are straight and strong / are beautifully finished - are splitting! / unravel when touched
@expect + plump cushions and a solid frame / a soft fabric and years of comfort - sagging cushions and a creaking frame / a cheap smell and crooked seams
@out + ordered the matching armchair / recommended the maker to all our neighbors - had it collected and refunded / sold it at a loss / filed a complaint
@scene + three children use it as a ship and it still looks new / the whole family fights for the corner seat, including the dog - one arm came loose while my mother was sitting on it / the chemical smell drove us out of the living room

= tent | product | our old tent | nine nights in the hills
the poles + slot together in seconds / bend without complaint / are light and strong - splintered in a mild wind! / are impossible to match / bend out of shape
the groundsheet + is thick / kept us dry in a swamp of a field / wipes clean - lets water in! / tore on the first night! / is thinner than a shopping bag
the zips + glide open with one finger / feel smooth even in the cold - jam halfway / snag on the fabric at every turn
the porch + has generous room for wet gear / is roomy and clever - collapses in rain / is too small for one pair of boots
the ventilation + is excellent / keeps the inside fresh - is useless! / leaves everything dripping by dawn
the seams + are neatly taped / stayed tight in a storm - leak! / began to split!
@expect + dry nights and easy poles / a roomy porch and strong seams - puddles by morning and broken poles / jammed zips and a soaked sleeping bag
@out + booked another camping week because of it / bought the larger version for the children - returned it / slept in the car / left it in the campsite trash
@scene + a storm flattened half the campsite and we slept through it / two beginners pitched it in the dark in six minutes - we woke up in a puddle with our bread floating past / it took three adults an hour and a half to put up

= vacuum cleaner | product | my old vacuum cleaner | two months with a shedding dog
the suction + is powerful / lifts dog hair from deep carpet / stays strong until the bin is full - is pitiful! / fades after five minutes / cannot lift a crumb
the motor + purrs / is surprisingly quiet - screams / smells of burning!
the hose + reaches every stair / is flexible - splits / clogs daily / tangles around everything
the bin + empties cleanly with one hand / is easy to rinse - spills dust on the floor! / jams shut / fills up absurdly fast
the brush + glides over rugs / never tangles / is easy to clean - chews the carpet! / scratches the floor / stops turning at random!
the weight + is perfect for my bad back / is easily managed on the stairs - is a burden / makes my wrist ache
@expect + strong suction and a quiet motor / clean carpets and an easy life - a weak motor and a clogged hose / noise, dust and a short battery life
@out + bought one for my parents / ordered a second one for upstairs - took it back / demanded a refund / went back to the broom
@scene + it pulled up a glass full of dust from a carpet I had thought was clean / my son now fights his sister for the right to clean the hall - it coughed the dust back out over a clean floor / it overheated and died in the middle of the stairs

= backpack | product | my previous backpack | a summer of trains and trails
the straps + are padded and comfortable / spread the load well / hug the shoulders - cut into my shoulders / slip constantly / feel cheap
the zippers + run smoothly / feel strong - burst! / jam / lost their teeth in a week
the pockets + are clever / hold everything in order / are exactly where I need them - are too shallow to be useful / are badly placed / ripped!
the fabric + sheds rain / is tough as sailcloth / has a handsome weave - frays / soaks through / fades after one wash
the back panel + lets air through / supports my spine perfectly - makes my back ache! / traps sweat
the laptop sleeve + is well padded / fits snugly - is a joke / offers no protection
@expect + padded straps and clever pockets / tough fabric and dry books - broken zippers and sore shoulders / thin fabric and wet books
@out + bought the small version for my daughter / told half my office to buy one - sent it back / cut it up for rags / complained to the manufacturer
@scene + it fell off a luggage rack onto stone and the laptop inside was safe / I carried it for nine hours and forgot I had it on - a strap tore off while I was running for a train / my notes turned to pulp in a light shower

= office chair | product | my previous chair | five weeks of long days
the seat + is firm yet forgiving / stays comfortable for hours / is wide and supportive - numbs my legs! / sank within a month / feels like a plank
the backrest + supports my spine / adjusts easily / eased my back pain - leans to one side / digs into my ribs / snapped back without warning!
the wheels + roll quietly / glide over rugs - squeal / lock up / left dents in the wood
the armrests + are soft and stable / adjust in every useful direction - wobble / cracked! / are too low to be of any use
the assembly + was simple / took ten pleasant minutes - was a nightmare! / took a whole miserable evening
the mesh + keeps me cool / looks smart - sags / ripped at the corner
@expect + good support and quiet wheels / an easy assembly and a healthy back - a sore back and squealing wheels / missing screws and a crooked seat
@out + ordered four more for the team / bought a second one for home - returned it / pushed it out to the curb / went back to a kitchen stool
@scene + my doctor noticed the difference in my posture before I did / I stood up after a nine hour day and nothing hurt - the gas lift collapsed in the middle of a video call / two of the screws did not fit any hole in the frame

= camera | product | my old camera | one wedding and two holidays
the focus + is quick and accurate / tracks a running child with ease - hunts endlessly / misses half the shots! / drifts
the colors + are vivid yet natural / are gorgeous at dusk - look washed out / turn everyone a sickly green
the grip + feels secure / is comfortable in cold hands - is slippery / feels hollow and cheap
the menus + are logical / are easy to learn - are a maze / are baffling
the screen + is bright in full sun / is sharp and responsive - is dim / freezes! / scratches easily
the lens + is razor sharp / handles low light beautifully - produces blurry corners! / rattles / fogs up in mild weather
@expect + sharp pictures and quick focus / vivid color and simple menus - blurry pictures and a dead battery / slow focus and confusing menus
@out + bought a second lens for it / sold all my other gear - returned it / sold it at half the price / sent it in for repair and asked for a refund
@scene + I printed one picture the size of a door and it is still sharp / my grandmother looked at her portrait and cried happily - it lost every picture of the ceremony / it froze just as the bride turned around

= rain jacket | product | my previous jacket | a wet autumn on the bike
the hood + fits over a helmet / turns with my head - blows off in any breeze / drips into my eyes
the zipper + is smooth and watertight / feels strong - sticks / leaks! / broke off in my hand!
the fabric + breathes well / beads water after a dozen washes / is light and tough - turns clammy / soaks through at the shoulders! / tore on a twig!
the cuffs + seal neatly / adjust easily - let the rain in! / fray
the pockets + stay dry / are roomy - fill with water / are uselessly small
the cut + is flattering / leaves room for a sweater - is baggy / rides up at the back
@expect + dry shoulders and a good hood / light fabric and a neat cut - soaked sleeves and a useless hood / clammy fabric and broken zippers
@out + bought the same one in blue / bought one for my sister - returned it / threw it away / bought a cheap poncho instead
@scene + I cycled for an hour in a thunderstorm and arrived dry / two strangers asked me where they could buy one - I reached work so wet that I had to borrow trousers / the lining came off in my hands like wet paper
"""

PROGRAMS = """
= budgeting app | program | the app I used before | one full tax year
the setup + takes five minutes / is friendly and clear - drags on forever / is a maze of forms
the charts + are clear / make sense at a glance / are beautiful - are misleading / are cluttered / never load
the bank link + is reliable / works flawlessly - breaks every week! / loses transactions! / is painfully slow
the reminders + are helpful and discreet / saved me two late fees - nag / arrive too late / are impossible to silence
the support team + answers within the hour / is kind and patient - ignores every message! / is rude / sends useless canned replies
the export + is quick and tidy / pleases my accountant - is full of errors! / crashes!
@expect + clear charts and a reliable bank link / helpful reminders and honest pricing - hidden fees and crashes / lost transactions and endless ads
@out + paid for another year / moved the whole family onto it - deleted it / canceled my subscription / disputed the charge
@scene + it found a forgotten subscription that had cost me ninety dollars a year / I have saved more in six months than in the last three years - it charged my card twice and blamed my bank / it showed my salary as a debt for a month

= language course | program | the course I took before | three months of lessons
the lessons + are short and lively / build on each other beautifully - are dull / repeat the same six phrases / are full of mistakes!
the teachers + are warm and encouraging / explain patiently - mumble / sound bored / mock beginners!
the exercises + are inventive / stick in the memory - are tedious / are childish / crash halfway
the recordings + are clear and natural / are a pleasure to listen to - sound robotic / are garbled
the pace + is ideal / is gentle yet challenging - is exhausting / is glacial
the grammar notes + are admirably clear / answer every question I have - are baffling / contradict each other!
@expect + lively lessons and patient teachers / clear grammar and natural recordings - dull drills and robotic voices / tedious exercises and constant ads
@out + signed up for the next level / gave a year of it to my niece - canceled / demanded a refund / quit in the second week
@scene + a waiter in a mountain village understood me and answered at full speed / my mother-in-law laughed at a joke I made in her own language - after forty lessons I could not order a glass of water / it marked correct answers wrong and took my points away

= navigation app | program | the app I used before | a year of deliveries
the route + is sensible / avoids traffic like magic - leads into dead ends! / adds miles for no reason
the voice + is calm and clear / speaks up in good time - is shrill / speaks too late! / shouts over my music
the map + is crisp / shows every footpath - is years out of date / freezes! / lags behind the car
the search + understands half an address / is fast - is hopeless with street names / sends me to the wrong town!
the offline mode + works perfectly / is a lifesaver in the hills - vanishes when needed / drains the phone
the traffic report + is accurate / is refreshingly honest - is always wrong! / comes too late to help
@expect + sensible routes and clear directions / quick search and a fresh map - wrong turns and a frozen map / dead ends and constant pop-ups
@out + paid for the full version / put it on every phone in our van fleet - uninstalled it / went back to paper maps / canceled the premium plan
@scene + it steered us around a closed bridge before the radio had mentioned it / my grandfather, aged eighty, drives alone again because of it - it sent a truck down a farm track and we waited four hours for a tractor / it announced our arrival in the middle of a lake

= photo editor | program | the program I used before | a season of weddings
the tools + are precise / are easy to find - are buried in menus / are crude / misbehave
the filters + are subtle and tasteful / flatter every face - are garish / make skin look like wax
the interface + is clean and calm / feels natural - is cluttered / is bewildering
the speed + is astonishing / is a relief on my old laptop - is dreadful / makes every edit a chore
the updates + bring useful things / arrive without fuss - break something every time! / delete my settings!
the price + is fair / is a bargain - is outrageous / went up without warning
@expect + precise tools and tasteful filters / a clean interface and quick exports - crashes and garish filters / lost files and a bewildering interface
@out + bought the lifetime license / moved my whole studio to it - uninstalled it / asked for my money back / went back to the old program
@scene + it rescued a portrait that I had given up for lost / I finished four hundred pictures in one quiet evening - it crashed on saving and took the whole morning with it / it stamped its logo across a client's pictures

= streaming service | program | the service we had before | a long winter of evenings
the catalog + is rich / is full of hidden gems - is stale / is padded with junk
the picture + is sharp / stays smooth on a slow line - stutters / turns to blocks in every dark scene
the suggestions + are thoughtful / are spot on - are insulting! / repeat the same five films
the subtitles + are accurate / are easy to read - lag / are riddled with errors
the billing + is transparent / is fair - is deceptive! / is a trap!
the menus + are quick and tidy / remember where we stopped - are sluggish / autoplay loud trailers
@expect + a rich catalog and a sharp picture / thoughtful suggestions and fair billing - stuttering pictures and endless ads / stale films and a billing trap
@out + renewed for another year / gave a subscription to my parents - canceled it / reported them to my bank / left for a rival
@scene + we watched a silent film with live piano and nobody in the room spoke for an hour / our teenagers voluntarily sat through a documentary and asked for more - the final stopped ten minutes before the end and never came back / they kept taking money for four months after we had left
"""
