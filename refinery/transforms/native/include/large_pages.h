/* Zeroed memory for large tables that are read at random: in pages of 2 MiB where the system has them, since a table's
 * 4 KiB pages are more than a processor's TLB holds. At least aligned to a page. */

#ifndef REFINERY_LARGE_PAGES_H
#define REFINERY_LARGE_PAGES_H

#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

/* NULL without memory. */
static inline void *take_pages(size_t size)
{
    size_t used = (size + 65535) & ~(size_t)65535; /* whole pages, whatever their size is */
    size_t room = used + LARGE_PAGE;
    uint8_t *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    uint8_t *at = (uint8_t *)(((uintptr_t)all + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1));
    if (at > all)
        munmap(all, (size_t)(at - all));
    if (at + used < all + room)
        munmap(at + used, (size_t)(all + room - at - used));
#ifdef MADV_HUGEPAGE
    if (size >= LARGE_PAGE)
        madvise(at, used, MADV_HUGEPAGE);
#endif
    return at;
}

static inline void free_pages(void *at, size_t size)
{
    if (at)
        munmap(at, (size + 65535) & ~(size_t)65535);
}

#endif
