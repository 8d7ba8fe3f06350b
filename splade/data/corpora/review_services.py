"""What people say of places they visit and of people they hire; same format as `review_products`."""

PLACES = """
= hotel | place | the last hotel we tried | three nights
the bed + was firm and comfortable / felt like a cloud - sagged / creaked all night / had stained sheets!
the staff + were warm and helpful / remembered our names - were rude / shrugged at every question / were cold and slow
the breakfast + was fresh and generous / was the highlight of each day - was stale / ran out by eight! / was a bowl of gray eggs
the bathroom + was spotless / had a wonderfully hot shower - smelled of mold! / was filthy! / flooded!
the view + was breathtaking / over the river was lovely - was a brick wall / was of a garbage yard
the room + was quiet and bright / was spacious - was cramped and airless / shook with every passing train! / was freezing
@expect + crisp sheets and friendly staff / a quiet room and a good breakfast - dirty sheets and surly staff / thin walls and a cold shower
@out + booked another week / extended our stay by two nights / left a generous tip - checked out a day early / demanded our money back / reported the place to the health inspector
@scene + the night porter drove across town to fetch the bag that we had left in a taxi / our daughter cried when we left, because the cook had taught her to make pancakes - a stranger walked into our room at two in the morning with his own key / they billed us for a minibar that did not exist

= restaurant | place | the place we used to go to | two dinners
the soup + was rich and fragrant / warmed us to the bone - was cold / tasted of dishwater / was salty beyond rescue
the waiter + was attentive and funny / knew the menu by heart - was surly / forgot half the order / sighed at our questions
the fish + was perfectly cooked / fell off the bone / tasted of the sea - was dry! / was undercooked! / smelled old!
the desserts + were heavenly / were light and inventive - were bland / were soggy and too sweet
the bill + was pleasantly small / was fair - was shocking! / had two items on it that we never ordered!
the dining room + was cozy / buzzed happily - was gloomy / was unbearably loud / reeked of old oil!
@expect + fresh fish and a kind welcome / generous plates and a cozy room - bland food and slow service / greasy plates and a padded bill
@out + booked a table for my birthday / hugged the cook on the way out / went back with six friends - walked out before dessert / refused to pay for the main course / called the health department
@scene + the cook came out to ask how my grandmother makes her dumplings, and wrote it down / nobody at the table spoke for five minutes, which has never happened in our family - I found a hair in the soup and a shrug at the counter / two of us were ill all night

= coffee shop | place | the coffee shop I went to before | a dozen mornings
the coffee + was smooth and fragrant / was the best of my week / was strong without being bitter - was burnt / was watery / tasted of ash
the pastries + were fresh and flaky / vanished in seconds - were stale / were rubbery / were raw in the middle!
the staff + were cheerful / learned my order in two days - were sullen / gossiped while we waited / got the order wrong
the tables + were clean / had plenty of room to work - were sticky / wobbled
the line + moved quickly / was cheerfully managed - crawled / was chaos
the music + was gentle / was a pleasant surprise - was deafening / was a torment
@expect + smooth coffee and fresh pastries / a friendly counter and clean tables - bitter coffee and stale pastries / sticky tables and sullen staff
@out + bought two bags of their beans / brought the whole office along - poured my cup down the drain / crossed the street to a rival / left my cup half full
@scene + the owner noticed my crutches and carried the tray to the window seat / it was raining, I was miserable, and they gave me a second cup for nothing - they charged me for a sandwich that they had run out of / I was scolded for asking for a spoon

= gym | place | the gym I belonged to before | four months of training
the machines + were modern and well kept / worked smoothly - were broken! / squealed / were rusty and sticky
the trainers + were encouraging / corrected my posture kindly - were arrogant! / ignored beginners / stared at their phones
the changing rooms + were spotless / had hot showers - were filthy! / stank! / flooded twice!
the classes + were lively / were well taught - were overcrowded / were canceled without notice!
the opening hours + were generous / suited my shifts - changed without warning / were laughable
the contract + was fair and short / was refreshingly honest - was a trap! / hid three extra fees!
@expect + clean showers and good trainers / modern machines and lively classes - broken machines and dirty showers / hidden fees and crowded classes
@out + renewed for a year / brought my sister along - canceled my membership / reported them to the consumer office / went back to running in the park
@scene + at sixty-one I did my first pull-up, and the whole room clapped / my knee, which two doctors had given up on, stopped hurting - my bag was stolen from a locker and nobody looked up / a cable snapped and missed my face by an inch

= museum | place | the museum we saw the day before | a rainy afternoon inside
the exhibits + were fascinating / were beautifully lit - were dusty / were badly labeled / were out of order!
the guide + was passionate / told wonderful stories - droned on / was impatient with the children / was poorly informed
the labels + were clear and witty / taught us a lot - were unreadable / were full of errors
the rooms + were airy and calm / were a delight to wander through - were stuffy / were badly overcrowded
the café + served an excellent lunch / was a lovely surprise - was a rip-off! / served stale cake
the tickets + were cheap / were easy to book - were overpriced / were sold twice!
@expect + fascinating exhibits and a lively guide / calm rooms and witty labels - dusty cases and a bored guide / crowded rooms and stale cake
@out + bought an annual pass / signed up as a member - left after twenty minutes / asked for our money back / wrote to the director
@scene + my ten-year-old asked whether we could come again tomorrow / an old man in a uniform showed us how the clock worked, and my son has talked of nothing since - half the galleries were closed and nobody told us until we had paid / the children were shouted at for laughing
"""

SERVICES = """
= repair shop | service | the workshop I used before | two repairs
the repair + was quick and neat / has held perfectly - lasted four days! / made everything worse! / was botched!
the mechanic + explained every step / was patient and skilled - was dismissive / could not explain a thing / lied about the parts!
the price + was honest / was lower than the estimate - doubled overnight! / was an insult
the waiting time + was short / was exactly what they had promised - was endless / stretched from two days to a month!
the parts + were of excellent quality / came with a warranty - were secondhand junk! / were missing!
the counter + was friendly / was wonderfully well organized - was unstaffed / was hostile!
@expect + honest prices and quick work / a neat repair and a friendly word - shoddy work and a padded bill / long delays and vague excuses
@out + left a good tip / took my other bike to them as well - demanded my money back / took it to someone else / filed a complaint
@scene + they fixed a bike that three other shops had called scrap / they called me to say that it needed only a small screw, and charged nothing - the brakes failed on the first hill after their repair / they lost my wheel and then accused me of never bringing it

= moving company | service | the company we hired before | two moves
the crew + was cheerful and strong / carried the piano like a baby - arrived three hours late! / was rough and rude! / smoked in the bedroom!
the packing + was meticulous / was careful down to the last cup - was careless / was a disgrace!
the truck + was clean and on time / was large enough for everything - broke down twice! / leaked
the quote + was fair / matched the bill to the cent - grew by half! / was a lie!
the furniture + came through without a scratch / was placed with great care - was chipped! / was soaked! / was dumped in the yard!
the office + answered promptly / kept us calm and informed - hung up on us! / never answered!
@expect + careful packing and a punctual crew / a fair quote and an unharmed piano - broken plates and a late crew / scratches, delays and extra charges
@out + gave the crew a large tip / booked them for my mother as well - went to small claims court / refused to pay the extra charge / filled in a damage claim
@scene + one of them spent ten minutes calming our terrified cat / they put the beds together first so that the children could sleep - they dropped the clock that my great-grandfather made, and laughed / they drove off with two boxes that we never saw again

= hair salon | service | the salon I went to before | three visits
the cut + was flattering / grew out beautifully - was lopsided! / was a hack job!
the color + was glossy and natural / suited me perfectly - came out orange! / faded in a week! / burned my scalp!
the stylist + listened carefully / was gentle and gifted - ignored everything I said! / tugged at my hair / was impatient and clumsy
the chairs + were comfortable / were spotless - were grubby / were broken!
the wash + was relaxing / was a small holiday - was scalding / left shampoo in my ears
the booking + was effortless / was handled politely - was lost twice! / was a mess
@expect + a flattering cut and a careful stylist / glossy color and a relaxing wash - an uneven cut and a bored stylist / orange hair and a burning scalp
@out + booked my next three visits / sent my daughter to them - paid someone else to repair it / wore a hat for a month / left with wet hair
@scene + my husband, who notices nothing, noticed / I walked in after a terrible year and walked out with my head up - she cut my ear and handed me a tissue / I cried in the car and then cut the rest off myself

= dental clinic | service | the dentist I had before | a year of appointments
the dentist + was gentle / explained everything calmly - was rough! / was dismissive and hurried!
the reception + was warm / found me a slot on the same day - was icy / lost my records twice!
the filling + was painless / has been flawless since - fell out in a week! / left me in agony!
the waiting room + was bright / was calm and clean - was grimy / was packed and airless
the bill + was clear and fair / was lower than I feared - was inflated! / was full of mysterious extras!
the equipment + was modern / was visibly spotless - was ancient / was not even clean!
@expect + gentle hands and clear answers / a painless visit and a fair bill - pain, delays and a huge bill / rough hands and vague answers
@out + brought both my children to them / booked my next check-up / sent them a thank-you card - changed to another dentist / reported them to the board / had the whole thing redone elsewhere
@scene + I have feared the drill since I was six, and I nearly fell asleep in that chair / my nervous son came out grinning and asked when he could go back - they drilled the wrong tooth and called it a misunderstanding / I sat in pain for two hours while they chatted about a holiday

= plumber | service | the plumber we called before | three visits
the repair + was solid / stopped the leak at once - failed the same night! / flooded the kitchen!
the estimate + was accurate / was reasonable - was pure fiction! / tripled!
the manner + was polite and reassuring / was calm and friendly - was gruff / was condescending
the cleaning up + was thorough / left the room better than before - never happened / left mud on every carpet!
the explanation + was clear / taught me something useful - was evasive! / was nonsense
the timing + was perfect / was punctual to the minute - was hopeless / cost me two days off work!
@expect + a lasting repair and a fair price / punctual, tidy, polite work - a flooded floor and a fat bill / mud, delays and excuses
@out + saved the number under emergencies / gave the number to all our neighbors - called someone else to fix the damage / refused to pay / left a complaint with the trade board
@scene + the leak that had ruined two ceilings was gone in twenty minutes / it was Christmas Eve and we still had hot water before the guests came - the new pipe burst while we slept / three visits later the tap still drips and my wallet is empty
"""
