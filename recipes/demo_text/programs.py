"""Program text: listings with English comments, and prose that quotes a line or two of a program.

A {slot} holds nothing but a word, so the brackets of a block never look like one.
"""

from demo_text.stock import lines, words

PROGRAM_SLOTS = {
    "item": words("visitor, ticket, lantern, barrel, letter, parcel, drawing, apple, garden, boat"),
    "part": words("price, weight, number, height, owner, date, length, shelf"),
    "verb": words("count, print, move, check, store, read, sort, find"),
}

# One function each. Lines that end in a bracket or a semicolon are two in three; the comments are the prose.
FUNCTIONS = [
    """// Go through the whole list of the {item}s and add up the {part} of every {item} that is still in the house.
int {verb}_every_{item}(struct {item} *first) {
    int total_{part} = 0;
    struct {item} *next_{item} = first;
    // The list ends with an empty place, which is how we know that there is nothing left to look at.
    while (next_{item} != NULL) {
        total_{part} += next_{item}->{part};
        next_{item} = next_{item}->next;
    }
    return total_{part};
}""",
    """// This is called before the {item} is given away, and it says no when somebody else has already asked for it.
bool may_{verb}_the_{item}(struct {item} *this_{item}) {
    if (this_{item}->{part} < {n}) {
        return false;
    }
    // A {item} that nobody has asked for in the last {n} days goes back to the shelf that it came from.
    if (days_since(this_{item}->date) > {n}) {
        put_back(this_{item});
    }
    return true;
}""",
    """// Write one line for each {item} into the book, with the {part} first, so that it is easy to find later on.
void {verb}_{item}_in_the_book(FILE *book) {
    for (int i = 0; i < number_of_{item}s; i++) {
        // Old books have no column for the {part}, and there we leave a gap that can be filled in by hand.
        print_line(book, all_{item}s[i].{part});
        lines_written++;
    }
    close_book(book);
}""",
    """// When the {part} of a {item} has changed, the old one is kept for {n} days in case that it was a mistake.
void change_{part}_of_{item}(struct {item} *the_{item}, int new_{part}) {
    the_{item}->old_{part} = the_{item}->{part};
    the_{item}->{part} = new_{part};
    // It would be nice to ask the owner here, but most of them are not at home when this runs at night.
    the_{item}->changed = today();
    save(the_{item});
}""",
]
LISTING_INTROS = lines(
    """
    This is the program that we use to keep the list of every {item} in the village, and you may copy it as you like.
    Here is the part of the program that looks after the {item}s, as it has been running in the office since {year}.
    The following lines were written by {person} in {year} to {verb} the {item}s, and they still work well.
    """
)

# Sentences around a quoted line, and the line.
QUOTE_INTROS = lines(
    """
    The {group} count everything with a small program of their own, and its most important part is this:
    Whoever likes to know how the clock on the wall is set every night finds the answer in these lines:
    {person} wrote the rules down for the computer in the office, and they are short enough to be shown here:
    """
)
QUOTES = [
    """if (visitors > {count}) { open(side_gate); }
else { close(side_gate); }""",
    """for (int day = 1; day < {n}; day++) { ring(bell, day); }""",
    """while (water < {n}) { run(hand_pump); }""",
]
