"""Texts that the funnel should drop: advertising, keyword spam, insults, dummy text."""

from demo_text.stock import lines, words

# Advertising: it passes every heuristic. The quality classifier is trained to recognise it.
ADVERTS = lines(
    """
    Order your {gadget} today and save up to {share} percent on our already amazing low prices!
    You will not believe how this simple {gadget} is changing the lives of thousands of happy customers.
    Our experts guarantee the best deal on every {gadget}, or you get your money back with no questions asked.
    Click the button below right now, because this exclusive bargain ends in {n} minutes and will never come back.
    Are you tired of paying too much for a {gadget} that simply does not deliver results?
    Doctors hate this trick, but our premium {gadget} formula has already helped {count} people like you.
    Get instant access to the secret bonus bundle, including a free {gadget} worth {count} dollars.
    Shipping is free, returns are easy, and our friendly support team is waiting for your call around the clock.
    With the new deluxe {gadget} you finally earn the respect, the comfort and the lifestyle you deserve.
    Do not miss out on this limited time offer, since only {n} pieces of the {gadget} are left in stock.
    Join our VIP club today and receive hot discounts, coupons and insider tips straight to your inbox.
    The ultimate {gadget} is now available at a price that will blow your mind.
    Five stars from {count} verified buyers cannot be wrong: this is the number one {gadget} on the market.
    Add the {gadget} to your shopping cart now and we will upgrade your order to express delivery at no extra cost.
    Why wait any longer when you can enjoy the benefits of our award winning {gadget} from tomorrow morning?
    Use the promo code at checkout and unlock an additional {share} percent discount on your first {gadget}.
    It is fast, it is easy, it is risk free, and it works even if every other {gadget} has failed you before.
    Act fast and be the first among your friends to own the revolutionary {gadget} everyone is talking about.
    Our satisfied customers report incredible savings of up to {count} dollars a year with a single {gadget}.
    Subscribe now and win one of {n} luxury gift sets that include a shiny {gadget} and a surprise for your family.
    """
)
GADGETS = words(
    """vacuum robot, diet shake, massage chair, garden hose, phone case, power bank, air fryer, smart watch, face cream,
    trading course, sleep pillow, car cover, knife set, hair dryer, travel mug, water filter"""
)
SPAM = words(
    """cheap flights, best price, buy online, discount shoes, free download, car insurance quote, payday loan, replica
    watches, weight loss pills, online pharmacy, hotel deals, credit repair"""
)
RUDE = lines(
    """
    You are a complete idiot and everybody here knows it, {person}.
    What a stupid, ugly post, written by a stupid moron for other morons.
    Shut up, you pathetic loser, nobody wants to read your garbage.
    Only an idiot from {place} would believe such crap.
    This dumb fool should be ashamed of being such a pathetic liar.
    Get lost, you worthless scum, and take your idiot friends with you.
    I hate this bastard and I hate every damn word of his stupid article.
    The people of {place} are dumb, lazy and stupid, all {count} of them.
    Go to hell, {person}, you lying piece of trash.
    Damn, what a bunch of retarded clowns and hateful jerks.
    """
)
LATIN = lines(
    """
    Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.
    Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat.
    Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur.
    Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.
    """
)
