"""What people write about sports, technology and money: the other half of the material, in the same written form."""

from __future__ import annotations

WORLD = """
= sports | final
about: the cup final / that goal in extra time / the last penalty
fact: the keeper let the ball slip through her [hands|legs] in the last minute / we were two goals down at the half / the winner went in off the post / the referee blew the whistle while the ball was in the air / our captain missed from the spot and wept
ask: why the referee did not look at the replay / whether that was offside / who will captain the side next season
do: watch the replay before you shout / play with two strikers / give the young keeper another match
side: on the way home from the cup final / while my brother shouted at the replay / in the stands, in the rain

= sports | tennis
about: a match of five sets / her second serve / the server from the qualifying rounds
fact: she served eleven aces and lost / the third set went to a tie-break that took [an hour|forever] / he broke her serve with a lob / rain stopped play at four games all / she hits her backhand with one hand, as hardly anyone does now
ask: why nobody comes to the net any more / whether her serve will hold on clay / how the draw put both of them in one half
do: watch the doubles / keep an eye on the girl on court nine / hit the second serve harder
side: beside court nine / during the tie-break / when rain had stopped play

= sports | injury
about: the striker's knee / a season on the bench / the comeback of our captain
fact: the captain tore a ligament and will miss the [playoffs|derby] / the coach kept him on the bench until the last ten minutes / he scored with his first touch after nine months out / the team doctor waved and the crowd went quiet / without her the defense let in four
ask: whether he can play in the derby / who will take the free kicks while she is out / when the coach will put him back in the side
do: let the captain sit out the derby / play the young striker from the start / change the formation while she is out
side: on the bench with the substitutes / when the team doctor ran onto the field / at the captain's first match back

= sports | transfer
about: the price of the new striker / a transfer on the last day / our chairman and his budget
fact: the club paid [forty|sixty] million for a man who has scored twice / they sold the left back in order to buy a goalkeeper / the contract runs until he is thirty-four / the fans booed the chairman before the kick-off / the youth side won the league for the price of a bus
ask: who will play at left back now / whether the league will look into the transfer / why a club sells its top scorer in January
do: trust the youth side / sell the striker while he scores / watch the league before you judge the team
side: outside the stadium on the last day of transfers / at a meeting of the fans / while the crowd booed our chairman

= sports | golf
about: the last hole of the open / a round in the wind / his drive off the fourteenth tee
fact: his ball lay behind a tree and he played it left-handed / the wind took her drive into the [dunes|rough] / she needed two putts and took four / he led by three and finished [seventh|ninth] / the course was so dry that the balls ran for ever
ask: which club one takes from that bunker / whether he will win an open again / why they made the course longer
do: aim left of the flag / lay up before the water / walk the course with the last pair
side: behind the ropes on the last hole / in the rough, looking for a ball / on the fourteenth tee

= sports | cycling
about: the stage over the two passes / the sprint on the avenue / the rider in the spotted jersey
fact: the favorite attacked [nine|six] kilometers from the summit / a crash took down half the field on a wet descent / her lead shrank to four seconds on the last climb / the sprinters came in outside the limit / he looked at his power meter and let them go
ask: who will win the jersey for the climbers / whether a sprinter can get over that pass / why the field let the break go
do: keep your eye on the old rider / attack before the last climb / save the team for the mountains
side: by the road, waiting for the riders / at the summit, with a painted face / on a bend of the last climb

= sports | relay
about: the relay / her world record / the four hundred meters
fact: she touched the wall a hundredth of a second ahead / the baton fell at the second change / he ran the bend like a man [late for work|chased by dogs] / they were in lane eight and nobody had seen them coming / the record had stood since before she was born
ask: why she swims in the outside lane / whether that record will ever fall / who should run the last leg
do: put the fastest in third / come to the heats / practice the change until it is dull
side: at the heats / beside the pool / while they measured the jump again

= sports | video
about: the video referee / the whistle that came too late / a red card in the derby
fact: the referee stood at the screen for five minutes while the crowd [sang|whistled] / the goal was given, taken away and given again / two men were sent off before the half / the linesman raised his flag for a shoulder / the captain got a yellow card for asking
ask: whether the fourth official may overrule the referee / how many cards make a ban / why the clock is not stopped
do: stop the clock / let the captain ask once / play on unless the foul is plain
side: when the referee went to the screen / at the derby / behind the goal

= technology | battery
about: my phone's battery / an update that ruined my phone / the cable that charges nothing
fact: the battery falls from forty percent to zero [in a minute|as soon as I call] / the update took all night and now the screen flickers / it only charges when I hold the plug at an angle / the phone gets hot enough to warm my hands / the repair shop wants to replace the whole board
ask: whether the battery can be replaced at home / how one goes back to the version before the update / which app eats the power
do: turn off what runs in the background / wait a month before any update / clean the port with a wooden pick
side: with two percent on my phone / while my phone was updating / looking for a socket

= technology | virus
about: a virus on my laptop / the message with the strange link / my stolen password
fact: the file called itself an invoice and locked [every folder|all my pictures] / someone wrote to all my contacts in my name / the scanner found nothing and the pop-ups go on / my password was on a list of four million / the machine restarts whenever I open the mail program
ask: whether a locked folder can be opened again / how one checks a link before a click / which scanner can be trusted
do: unplug the machine at once / use a different password everywhere / wipe the disk and begin again
side: while the scanner went through my disk / on hold with the help desk / with a locked laptop on my knees

= technology | server
about: the crash of our server / a backup that was empty / the night the database went down
fact: the server ran out of memory at [two|four] in the morning / the backup had been writing empty files since June / a missing comma took down every page / the logs were full of the same line / we moved the database to a machine under my desk
ask: how often a backup should be tested / whether two small servers are better than one / why memory fills up overnight
do: test the backup before you need it / read the logs from the bottom / change one line at a time
side: while the server was restarting / with the logs on both screens / on call, at two in the morning

= technology | router
about: the router in our hall / the weak signal upstairs / our new connection
fact: the connection drops whenever someone uses the [microwave|old phone] / the signal does not reach the attic / the engineer came, looked at the cable and left / we measured the speed in every room / the router blinks orange and nobody knows why
ask: whether a second router helps / how one changes the channel / what the orange light means
do: put the router on a shelf / plug the cable in wherever you can / restart it every Sunday
side: beside the router / on hold with the phone company / while the engineer stared at a cable

= technology | watch
about: the watch that counts my steps / an app that reads the pulse / the sensor on my wrist
fact: it counts [steps|stairs] while I knit / the sensor reads the pulse of my sofa cushion / the app wants my position, my contacts and my birthday / it lost a month of data when I changed phones / the strap is fine, the software is not
ask: how one exports the data / whether the sensor works on a tattoo / which watch runs without an account
do: turn off the location / buy one with buttons / copy the data before you change phones
side: while my watch looked for a signal / in the settings of an app / trying to pair my watch

= technology | cookies
about: the cookies on every page / a browser that forgets / who reads my mail
fact: every page asks me about cookies and none takes [no|the first answer] / the browser blocked [ninety|two hundred] trackers before lunch / an ad followed me from page to page for a month / the button to refuse is gray on gray / my search for a word became an ad within the hour
ask: which browser blocks the trackers by itself / whether private windows are private / how one deletes an account for good
do: clear the cookies when you close the window / read mail as plain text / use another search engine
side: between two pop-ups / while I clicked away the cookies / in the settings of my browser

= technology | banking app
about: the update of the banking app / a spreadsheet with a bug / a code that arrives too late
fact: the app no longer runs on my phone, which is [four|five] years old / the code arrives after the screen has timed out / a bug in one cell made every sum wrong / it wants my fingerprint and does not know my finger / the spreadsheet takes a minute to open and then freezes
ask: how one signs in without a fingerprint / whether the old version can be installed again / why the app logs me out
do: keep the old phone for the codes / lock the cells with formulas / report the bug with a screenshot
side: waiting for a code on my phone / while the spreadsheet was frozen / after the ninth attempt to sign in

= technology | tablet
about: a tablet for my mother / the screen in our kitchen / the voice that answers questions
fact: the tablet reads the recipe aloud and stops when it hears [water|the fan] / the letters are too small and the settings are hidden / it understood timer and played a march / the screen does not react to floury fingers / my mother calls us by video and shows us the ceiling
ask: how one makes the letters larger / whether it listens when nobody speaks to it / which tablet has a stand
do: turn the microphone off / hide every icon but four / buy the one with the larger screen
side: while my mother looked for the right icon / shouting at the thing in our kitchen / under the ceiling, on a video call

= money | mortgage
about: the interest on our mortgage / a loan with a fixed rate / the bank's new offer
fact: the rate goes from two percent to [five|six] in May / the bank wants a fee for letting us go / we pay more interest than principal / another branch offered us half a point less / the house is worth less than we owe
ask: whether to fix the rate for ten years / what it costs to pay a loan off early / how much a bank will lend at sixty
do: ask three banks / fix the rate while you can / pay a little off every year
side: at the bank, in a chair that was too low / while the adviser worked out our rate / between two forms for the mortgage

= money | fund
about: my savings in a fund / stock in a single company / the crash that everyone expects
fact: the fund lost a third in the spring and has [crept back|not come back] / the fees ate the gain / I bought the stock at forty and it is at nine / the dividend was cut again / my adviser earns on every purchase
ask: whether to sell before the autumn / how many funds a small saver needs / what a bond yields now
do: spread your savings / buy every month and never look / keep half a year's wages in cash
side: with the price of my stock on the screen / while my adviser talked / reading the report of my fund

= money | card
about: the charges on my card / a payment abroad / the rate at the exchange counter
fact: the card charges [three|four] percent for every payment abroad / the machine offered to convert and kept the difference / two payments were booked twice and only one came back / the bank blocked the account when I bought a ticket / I was charged a fee for having no fee
ask: how one disputes a payment / which card has no charge abroad / whether cash is cheaper than a card
do: pay in the local currency / check the statement every week / carry cards of two banks
side: at the exchange counter / with a blocked card in my hand / on the line to the card company

= money | pension
about: my pension / the gap in my contributions / retiring at sixty-three
fact: the statement shows [eleven|seven] years without contributions / each early year costs nearly four percent / the fund of my first employer no longer exists / I may buy back three years by December / my wife's pension is half of mine
ask: what one early year costs / whether contributions from abroad count / how a widow's pension is worked out
do: order the statement at fifty / close the gap before December / keep the pay slips
side: with my pay slips on the carpet / at the pension office / on the day of my pension statement

= money | invoice
about: the unpaid invoices of a small bakery / rent for the shop / the price of flour
fact: the largest customer pays after [ninety|sixty] days / the rent goes up with the index and our prices do not / flour costs a third more than it did, so we lose on every loaf / the overdraft is at its limit / we earned less last year than our apprentice
ask: whether one can charge interest on an unpaid invoice / how much rent a turnover like ours can bear / when a small firm must register for the tax
do: send the invoice on the same day / raise the price in small steps / keep wages and rent in two accounts
side: over a pile of unpaid invoices / while I counted the till / on the last day of the quarter

= money | claim
about: the bill from the hospital / the premium for our insurance / a claim that was refused
fact: the insurance paid [half|a tenth] of the bill for the operation / the premium rose by a fifth since I turned sixty / the claim was refused because of a date / the deductible is higher than our savings / they want the receipt for every bandage
ask: how one appeals a refused claim / whether a higher deductible pays off / what a premium costs without the dental part
do: appeal in writing within the month / compare the premiums in November / keep a folder for receipts
side: with a folder of receipts / on hold with the insurance / while I added up the receipts

= money | taxes
about: my tax return / a refund from the tax office / what one may deduct
fact: the tax office wants [nine|four] hundred more than I had put aside / the desk in my bedroom does not count as an office / the refund came in August with [two cents|a day] of interest / the form has a line for oysters and none for me / I added the income of March twice
ask: whether a course can be deducted / how long receipts must be kept / what happens after the deadline
do: begin in January / put a third of each fee aside / ask the office before you pay an adviser
side: over line forty of the form / on the eve of the deadline / in the corridor of the tax office

= money | pitch
about: our pitch to the investors / the budget for the first year / shares in a young company
fact: the investors wanted a [third|quarter] of the company for one salary / we had cash for five months and a plan for three years / costs grew faster than sales / the second round of funding fell through on a Friday / my shares are worth a bicycle
ask: what a company without profit is worth / whether to take a loan or an investor / how long the cash should last
do: keep the majority of the shares / get the first customer before the first investor / halve the costs while you still can
side: before our pitch to the investors / with our budget on the wall / while the investors read our figures
"""
