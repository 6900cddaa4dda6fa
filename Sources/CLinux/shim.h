// Declarations that Swift's Glibc module lacks: epoll(7), eventfd(2), accept4(2), struct ucred, adjtimex(2), pipe2(2),
// posix_spawn_file_actions_addclosefrom_np(3), mallopt(3), dl_iterate_phdr(3), inotify(7) and memfd_create(2).
#ifndef HEIMDALLR_CLINUX_H
#define HEIMDALLR_CLINUX_H

#include <elf.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timex.h>

struct sockaddr;
int setsockopt(int, int, int, const void *, unsigned int);
int accept4(int, struct sockaddr *, unsigned int *, int);
int pthread_setname_np(pthread_t, const char *);
int pipe2(int[2], int);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);

int mallopt(int, int);
int memfd_create(const char *, unsigned int);

// M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3).
static const int heimdallr_trim_threshold = -1;
static const int heimdallr_mmap_threshold = -3;

static const uint32_t heimdallr_epoll_all = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (uint32_t)EPOLLET;
// MFD_CLOEXEC of memfd_create(2), IN_CLOEXEC | IN_NONBLOCK of inotify_init1(2).
static const unsigned int heimdallr_memory_flags = 1;
static const int heimdallr_inotify_flags = IN_CLOEXEC | IN_NONBLOCK;
// Events after which a name in a folder, or the folder itself, may mean another file. inotify(7).
static const uint32_t heimdallr_inotify_mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |
    IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Events of a file itself. A file that is a mount is changed through another folder.
static const uint32_t heimdallr_inotify_file_mask = IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD;
static const int heimdallr_epoll_cloexec = EPOLL_CLOEXEC;
static const int heimdallr_eventfd_flags = EFD_CLOEXEC | EFD_NONBLOCK;
// SOCK_STREAM, SOCK_CLOEXEC and SOCK_NONBLOCK of socket(2), whose header belongs to the Glibc module.
static const int heimdallr_accept_flags = 02000000 | 04000;
static const int heimdallr_stream_flags = 1 | 02000000 | 04000;

// SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, whose headers lack the types of socket addresses. iptables-extensions(8).
static const int heimdallr_original_destination = 80;

// struct ucred of unix(7), which SO_PEERCRED fills in.
struct heimdallr_peer {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
};

// environ(7), which Swift would treat as a mutable global that any thread may change.
static inline char **heimdallr_environment(void) {
    extern char **environ;
    return environ;
}

// Reads the rows and columns of a terminal; -1 if the descriptor is no terminal. TIOCGWINSZ of ioctl_tty(2).
static inline int heimdallr_window_size(int terminal, unsigned short *rows, unsigned short *columns) {
    struct winsize size;
    if (ioctl(terminal, TIOCGWINSZ, &size) < 0) return -1;
    *rows = size.ws_row;
    *columns = size.ws_col;
    return 0;
}

// Number of written bytes that the other side has not acknowledged: SIOCOUTQ of tcp(7) and unix(7). -1 on failure.
static inline int heimdallr_unacknowledged(int socket) {
    int count = 0;
    return ioctl(socket, TIOCOUTQ, &count) < 0 ? -1 : count;
}

// The GNU form of strerror_r(3) under a separate name, because C libraries declare `strerror_r` differently.
char *strerror_r(int, char *, size_t);
static inline const char *heimdallr_strerror(int code, char *buffer, size_t size) {
    return (const char *)(uintptr_t)strerror_r(code, buffer, size);
}

// First fields of struct dl_phdr_info of dl_iterate_phdr(3), whose header declares it under _GNU_SOURCE only.
struct heimdallr_object {
    Elf64_Addr address;
    const char *name;
    const Elf64_Phdr *headers;
    Elf64_Half count;
};
struct dl_phdr_info;
int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *);

static inline int heimdallr_release_object(struct dl_phdr_info *info, size_t size, void *unused) {
    const struct heimdallr_object *object = (const struct heimdallr_object *)(const void *)info;
    (void)size;
    (void)unused;
    for (int index = 0; index < object->count; index++) {
        const Elf64_Phdr *header = &object->headers[index];
        // Code with text relocations differs from the file, so it must stay in memory.
        if (header->p_type != PT_DYNAMIC) continue;
        const Elf64_Dyn *entry = (const Elf64_Dyn *)(object->address + header->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_TEXTREL) return 0;
            if (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL) return 0;
        }
    }
    for (int index = 0; index < object->count; index++) {
        const Elf64_Phdr *header = &object->headers[index];
        if (header->p_type != PT_LOAD || header->p_flags & PF_W) continue;
        uintptr_t start = (object->address + header->p_vaddr) & ~(uintptr_t)4095;
        uintptr_t end = (object->address + header->p_vaddr + header->p_memsz + 4095) & ~(uintptr_t)4095;
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

// Releases the pages of code and constants. The kernel reads a page again when it is used. madvise(2).
static inline void heimdallr_release_code(void) {
    dl_iterate_phdr(heimdallr_release_object, 0);
}

// Whether the kernel reports that the wall clock is synchronized. adjtimex(2).
static inline int heimdallr_clock_is_synchronized(void) {
    struct timex state = {0};
    return adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);
}

#endif
