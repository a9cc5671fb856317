"""English, the crawl's main language."""

from demo_text.stock import Stock, lines, topic, words

ENGLISH = Stock(
    slots={
        "place": words(
            """Harrowick, Dunmere, Saltby, Oakhollow, Fennimore, Brackenford, Westering, Larkhill, Stonebeck, Ashgrove,
            Millbrook Cross, Kettlewick, Northmoor, Port Ellery, Thornbridge, Wexcombe, Highgarth, Little Arden"""
        ),
        "person": words(
            """Martha Ellison, Tom Ridley, Aisha Rahman, George Pellow, Nina Castell, Walter Finch, Ruth Okafor,
            Daniel Marsh, Ingrid Solberg, Peter Hallam, Clara Voss, Samuel Adeyemi, Helen Barlow, Owen Trask"""
        ),
        "job": words(
            """retired engineer, local historian, school teacher, carpenter, museum guide, young researcher,
            former postman, botanist, town clerk, watchmaker, nurse, harbour pilot"""
        ),
        "adj": words(
            """patient, careful, rare, modest, sturdy, quiet, generous, practical, surprising, remarkable,
            reliable, delicate, bold, plain, valuable, narrow, steady, helpful, simple"""
        ),
        "thing": words(
            """notebook, workshop, wooden bridge, map, wall, roof, ladder, cellar, garden bench, lantern, clock, barrel,
            stone well, cart, window, drawing, sign, hand pump, gate, stove"""
        ),
        "material": words("oak, slate, limestone, copper, clay, brick, iron, wool, glass, canvas, cedar, granite"),
        "season": words("spring, summer, autumn, winter"),
        "month": words("January, March, April, May, June, August, September, October, November"),
        "group": words(
            """volunteers, students, neighbours, engineers, farmers, children, historians, pensioners, gardeners,
            apprentices, visitors from {place}, families"""
        ),
        "weekday": words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    },
    openings=lines(
        """
        In the {season} of {year}
        According to the archive in {place}
        After almost {n} years of work
        For most of the last century
        Shortly before the end of {month}
        On the edge of {place}
        When the first {group} arrived
        Since the summer of {year}
        Despite a {adj} beginning
        With the help of {person}
        As early as {year}
        To the surprise of many {group}
        During the long winter that followed
        On a {weekday} morning in {month}
        Compared with the figures from {place}
        Thanks to a {adj} gift from {person}
        Until the road to {place} was opened
        Every {season}, without exception
        By the middle of {month}
        A few miles outside {place}
        """
    ),
    tails=lines(
        """
        because the winters had become longer and wetter
        which nobody had expected at the time
        although the costs were higher than planned
        and the {group} still talk about it today
        so that even the smallest {thing} could be saved
        while the council in {place} was still discussing the plans
        as {person} wrote in a letter to the newspaper
        before the work was finally finished in {year}
        just as it had been described in the old {thing} book
        and nearly {share} per cent of the people agreed
        even if the {adj} weather made everything harder
        where it can still be seen on {weekday} afternoons
        without asking anyone for money
        until a storm damaged the {thing} in {month}
        and that made a real difference to the village
        since there was simply no other place for it
        if the weather allows it and the ground is dry
        long before anyone thought of selling tickets
        """
    ),
    subjects=lines(
        """
        the small team around {person}
        a {adj} group of {group}
        the town of {place}
        {person}, a {job} from {place},
        the oldest {thing} in the district
        a report from {year}
        the {adj} plan of the council
        the local newspaper
        nearly every family in {place}
        the house next to the {thing}
        a {job} called {person}
        the society of {group}
        """
    ),
    predicates=lines(
        """
        has | kept a {adj} record of every repair since {year}
        received | about {count} letters from {group} all over the country
        spent | less than {count} pounds on {material} and paint
        was | mentioned for the first time in a document from {year}
        changed | hands {n} times before {person} bought the {thing}
        needs | a new {thing} made of {material} before next {season}
        shows | how {adj} the work of the {group} really was
        offers | a free tour in {month} for anyone who can walk {n} steps
        became | the subject of a {adj} book by {person}
        brought | {group} and {group} together around one table
        was | painted green and white by a {job} from {place}
        counts | among the most {adj} places between {place} and {place}
        keeps | a collection of {count} photographs in a dry room under the roof
        lost | its {material} roof in the great storm of {year}
        opened | a little shop that sells tea, honey and postcards
        invited | a {job} to explain what should happen with the {thing}
        stands | between a {thing} and a row of {adj} trees
        served | as a school for {n} years and later as a store for {material}
        won | a regional prize of {count} pounds for its {adj} ideas
        asked | every household for one old {thing} and one good story
        replaced | the broken {thing} with one made from {material}
        has | never been closed for more than {n} days in a row
        depends | on the rain that falls in the hills above {place}
        remembers | the years when {share} per cent of the workers came from {place}
        measures | only {n} metres from the door to the {adj} back wall
        started | with {n} chairs, a borrowed {thing} and plenty of optimism
        moved | to {place} in {year} and has stayed there ever since
        explains | on {n} large boards what the {group} once did here
        rents | out its {adj} rooms for weddings and meetings
        trains | {n} young people each year in the use of {material}
        """
    ),
    sentences=lines(
        """
        Nobody in {place} calls it a {adj} success, yet the numbers speak for themselves: {count} people came in {year}.
        "We wanted to build something that lasts," says {person}, who has worked as a {job} for {n} years.
        What does it take to look after a {thing} like this one?
        It takes time, some {material}, and at least {n} people who know what they are doing.
        The first attempt failed, the second was better, and the third is the one that visitors can see today.
        Of the {count} pounds that were needed, about {share} per cent came from {group}.
        "My grandfather would have laughed at the idea," {person} remembers with a smile.
        There are plans to repeat the experiment in {place}, but no date has been fixed.
        A second {thing}, slightly smaller than the first, was found in a cellar in {year}.
        Those who come by train should leave at {place} and follow the path along the water for {n} minutes.
        The answer, as so often, lies in the {adj} details.
        In {month} the place is open from ten until four, and children do not have to pay.
        Some of the {group} have been coming here since {year}, others joined only last {season}.
        It is easy to forget how much of this was done by hand, with nothing but a {thing} and good light.
        "You learn to wait," is how {person} from {place} puts it.
        The most {adj} part of the story, however, happened in {month} {year}.
        """
    ),
    topics={
        "garden": topic(
            """A kitchen garden in {place}, Growing beans in a {adj} climate, What the soil of {place} tells us,
            {n} rules for a garden that feeds a family""",
            """
            the walled garden behind the church
            an old apple tree near the {thing}
            the vegetable plot of {person}
            a bed of beans and late potatoes
            the compost heap beside the shed
            the seed library in {place}
            """,
            """
            produces | around {count} kilograms of vegetables in a {adj} year
            benefits | from leaves, straw and a thin layer of ash every {season}
            attracts | bees and butterflies as soon as the lavender flowers
            suffered | badly from slugs after the wet {month} of {year}
            holds | water much longer since the {group} added more compost
            grows | best on a slope that faces south and is sheltered by the {material} wall
            contains | {n} kinds of tomato that have disappeared from the shops
            needs | very little water once the roots have reached the deeper clay
            teaches | the {group} of {place} how to save and dry their own seed
            was | planted with plum and pear trees from a nursery in {place}
            gives | enough fruit for jam, juice and {n} baskets for the market
            recovers | slowly when the frost comes back in late {month}
            """,
        ),
        "railway": topic(
            """The branch line to {place}, How a {adj} railway survived, Steam on the hill above {place},
            The last signal box between {place} and {place}""",
            """
            the narrow railway up the valley
            a steam engine built in {year}
            the station at {place}
            the signal box near the river
            the evening train to {place}
            a carriage with seats of red leather
            """,
            """
            carried | coal, milk and {count} passengers a week before the road was built
            climbs | {count} feet in less than {n} miles of track
            crosses | the river on a bridge of {material} with {n} arches
            closed | in {year} and was reopened by {group} a decade later
            runs | only on {weekday}s between {month} and {month}
            burns | almost a ton of coal on a {adj} day in {season}
            waits | {n} minutes at the junction for the connection from {place}
            was | restored with parts from a scrapyard near {place}
            reached | a speed of {n} miles an hour on the straight section by the lake
            employs | {n} drivers and firemen, all of them unpaid
            passes | through a tunnel where the {material} lining drips all year
            keeps | its original lamps, its bell and a timetable from {year}
            """,
        ),
        "baking": topic(
            """Bread from the {material} oven, The bakers of {place}, Why good dough needs {n} hours,
            A {adj} loaf and how to make it""",
            """
            the bakery on the market square
            a loaf made with rye and barley
            the dough in the long wooden trough
            the {material} oven of {person}
            a starter that dates from {year}
            the flour from the mill at {place}
            """,
            """
            rises | for {n} hours at a temperature that suits the yeast
            smells | faintly of nuts, apples and toasted grain
            bakes | at a falling heat until the crust is dark and thin
            needs | only flour, salt, water and a {adj} amount of time
            sells | {count} rolls before seven in the morning
            stays | fresh for {n} days when it is wrapped in a linen cloth
            uses | wheat from fields that lie within sight of {place}
            becomes | sour and heavy if the room is warmer than the cellar
            was | fed every evening with a spoonful of rye by {person}
            takes | up half of the room and is fired with {material} and beech
            turned | out to be lighter after the {group} changed the milling stone
            feeds | the {group} who come down from the hills on {weekday}
            """,
        ),
        "sky": topic(
            """Watching the stars from {place}, The observatory on the hill, A {adj} comet and its visitors,
            {n} nights under a dark sky""",
            """
            the observatory above {place}
            a telescope with a mirror of {n} inches
            the comet of {year}
            the night sky over {place}
            a meteor shower in {month}
            the dome of {material} on the ridge
            """,
            """
            collects | light from galaxies that are unimaginably far away
            opens | to the public on the first {weekday} after the new moon
            appeared | low in the west about {n} minutes after sunset
            recorded | {count} variable stars during its first {adj} season
            loses | much of its contrast because of the lamps in {place}
            was | ground and polished by hand over {n} months
            moves | across the constellation by roughly its own width each night
            turns | on wheels that were once part of an old {material} crane
            follows | a path that brings it back every {n} years
            impressed | {group} who had never looked through an eyepiece
            shows | the rings of Saturn clearly even when the air is unsteady
            sends | its measurements to an institute in {place} every {weekday}
            """,
        ),
        "river": topic(
            """The river below {place}, Floods and what we learned, The otters of {place},
            Cleaning {n} miles of water""",
            """
            the river between {place} and {place}
            a pair of otters near the weir
            the flood of {year}
            the ferry at {place}
            a meadow beside the old channel
            the weir with its {material} steps
            """,
            """
            rises | by as much as {n} feet after heavy rain in the hills
            carries | fine sand that settles in front of the {material} wall
            supports | trout, eels and {n} species of dragonfly again
            flooded | {count} houses and the cellar of the town hall
            was | straightened in {year} and is now allowed to bend once more
            returned | to the area after the {group} stopped using pesticides
            provides | clean water for {place} and a dozen smaller villages
            freezes | only in a very cold {season}, roughly every {n} years
            crosses | the stream on a cable and takes {n} people at a time
            slows | the current so that gravel and eggs are not washed away
            stores | rain like a sponge and releases it over {n} weeks
            forced | the {group} to leave their homes for {n} nights
            """,
        ),
        "library": topic(
            """A library without walls in {place}, Mending {count} books, The reading room of {place},
            Why {group} still borrow books""",
            """
            the public library of {place}
            a reading room with {n} green lamps
            the mobile library in its {adj} van
            a manuscript from {year}
            the catalogue on {count} paper cards
            the book club that meets on {weekday}
            """,
            """
            lends | {count} books a month, more than before the internet
            smells | of dust, leather and freshly brewed coffee
            visits | {n} villages a week and stops beside the church
            was | written on parchment in a {adj} and regular hand
            covers | everything from bee keeping to the history of {material}
            reads | one long novel every {season} and argues about the ending
            stays | open until nine because the {group} come after work
            survived | a fire that destroyed {share} per cent of the shelves
            repairs | torn pages with thin paper and a glue made from wheat
            lists | a title, a year and the name of whoever borrowed it first
            holds | letters that {person} sent from {place} in {year}
            gives | every new reader a pencil and a {adj} welcome
            """,
        ),
        "bicycle": topic(
            """Repairing bicycles in {place}, A cycle path to {place}, The {adj} return of the cargo bike,
            {n} miles to work and back""",
            """
            the repair café in {place}
            a bicycle with a frame of {material}
            the new cycle path along the canal
            the cargo bike of {person}
            a tour from {place} to the coast
            the ride to school on {weekday}
            """,
            """
            saves | roughly {count} car journeys a year
            weighs | {n} pounds, including the lamp and the wicker basket
            takes | about {n} minutes when the wind comes from behind
            fixed | {count} punctures and {n} bent wheels last {season}
            connects | the station in {place} with three schools and the hospital
            rolls | quietly over the cobbles thanks to its wide tyres
            cost | much less per mile than the road that was widened in {year}
            carries | bread, parcels and sometimes a very {adj} dog
            leads | past orchards, a {thing} and {n} old farm houses
            was | built by {group} who had never held a welding torch
            needs | oil on the chain after every wet ride in {season}
            shares | its tools with {group} who want to learn
            """,
        ),
        "bees": topic(
            """Keeping bees above {place}, Honey from {n} hives, A {adj} year for the bees of {place},
            What beekeepers do in {season}""",
            """
            the apiary of {person}
            a colony of about {count} bees
            the queen with the {adj} mark
            the honey harvest of {year}
            a swarm in the {thing}
            the beekeepers' society of {place}
            """,
            """
            gathers | nectar from lime trees, clover and late heather
            needs | at least {n} kilograms of stores to come through the {season}
            lays | more than {count} eggs a day when the willow is in flower
            yielded | {n} jars per hive, which is above the average
            settled | on a branch and hung there like a bunch of grapes
            defends | the entrance against wasps from {month} onward
            lends | smokers, veils and {material} frames to beginners
            dances | on the comb to show where the rape fields are
            was | moved to the moor on a {weekday} night in {month}
            suffers | when farmers mow the meadow before the flowers have set seed
            sells | its honey at the door, in glasses that come back {n} times
            checks | every hive for mites before the first frost
            """,
        ),
    },
    furniture={
        "nav": "Home|News|Places|People|Archive|About us|Contact",
        "cookie": "This website uses cookies to improve your experience. Read our cookie policy. Accept all",
        "related": "You might also like",
        "share": "Share this page",
        "footer": "All rights reserved. Terms of use. Privacy policy. Imprint",
        "by": "Written by {person} on {n} {month} {year}",
        "comments": "3 comments",
        "newsletter": "Sign up for our newsletter",
        "script": "Please enable JavaScript to use all functions of this page.",
    },
)
