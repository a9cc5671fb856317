/* Preloaded into a process and its children: appends one line to $WATCH_LOG for every connection that leaves this
 * machine, for every name that is looked up and every program that is started, and refuses connection and look-up.
 * What Python's audit hooks cannot see (gRPC, libxml2, curl) goes through here as well. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(const char *format, ...) {
    char line[512];
    const char *path = getenv("WATCH_LOG");
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length >= (int)sizeof line) length = sizeof line - 1;
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || write(file, line, length) != length) abort(); /* an unseen connection must not pass for none */
    close(file);
}

/* Whether the address is this machine's own, or no internet address at all; else `shown` names it. */
static int is_local(const struct sockaddr *address, char shown[INET6_ADDRSTRLEN]) {
    if (address->sa_family == AF_INET) {
        const struct in_addr *ip = &((const struct sockaddr_in *)address)->sin_addr;
        inet_ntop(AF_INET, ip, shown, INET6_ADDRSTRLEN);
        return (ntohl(ip->s_addr) >> 24) == 127 || ip->s_addr == 0;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *ip = &((const struct sockaddr_in6 *)address)->sin6_addr;
        inet_ntop(AF_INET6, ip, shown, INET6_ADDRSTRLEN);
        int mapped = IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127;
        return mapped || IN6_IS_ADDR_LOOPBACK(ip) || IN6_IS_ADDR_UNSPECIFIED(ip);
    }
    return 1;
}

int connect(int file, const struct sockaddr *address, socklen_t size) {
    char shown[INET6_ADDRSTRLEN];
    if (!is_local(address, shown)) {
        note("connect %s\n", shown);
        errno = ECONNREFUSED;
        return -1;
    }
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    return next(file, address, size);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static const char *const own[] = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"};
    int is_own = !node;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) is_own |= node && !strcmp(node, own[i]);
    if (!is_own) {
        note("lookup %s\n", node);
        return EAI_FAIL;
    }
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    return next(node, service, hints, found);
}

static void note_start(const char *path, char *const arguments[]) {
    const char *first = arguments[0] ? arguments[1] : NULL, *second = first ? arguments[2] : NULL;
    const char *third = second ? arguments[3] : NULL;
    note("exec %s %s %s %s\n", path, first ? first : "", second ? second : "", third ? third : "");
}

int execve(const char *path, char *const arguments[], char *const environment[]) {
    note_start(path, arguments);
    int (*next)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, "execve");
    return next(path, arguments, environment);
}

int execv(const char *path, char *const arguments[]) {
    note_start(path, arguments);
    int (*next)(const char *, char *const[]) = dlsym(RTLD_NEXT, "execv");
    return next(path, arguments);
}

int system(const char *command) {
    note("system %s\n", command ? command : "");
    int (*next)(const char *) = dlsym(RTLD_NEXT, "system");
    return next(command);
}
