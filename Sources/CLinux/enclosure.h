// What an enclosed program needs: namespaces, mounts, capabilities, a filter of system calls, descriptors in messages.
// Functions with a variable list of arguments, such as prctl(2), can't be called from Swift.
#ifndef HEIMDALLR_ENCLOSURE_H
#define HEIMDALLR_ENCLOSURE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int unshare(int);
int mount(const char *, const char *, const char *, unsigned long, const void *);
int umount2(const char *, int);

// CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC of unshare(2).
static const int heimdallr_enclosure_namespaces = 0x10000000 | 0x40000000 | 0x00020000 | 0x08000000;
// MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE of mount(2); MNT_DETACH of umount2(2).
static const unsigned long heimdallr_mount_staging = 2 | 4 | 8;
static const unsigned long heimdallr_mount_bind = 4096 | 16384;
static const unsigned long heimdallr_mount_slave = 16384 | (1 << 19);
static const int heimdallr_unmount_lazily = 2;
// O_PATH | O_CLOEXEC of open(2).
static const int heimdallr_path_flags = 010000000 | 02000000;

// Makes a mount and all below it read-only: mount_setattr(2) with AT_RECURSIVE and MOUNT_ATTR_RDONLY. Linux 5.12.
static inline int heimdallr_make_read_only(const char *path) {
    uint64_t attributes[4] = {1, 0, 0, 0};
    return (int)syscall(442, -100, path, 0x8000, attributes, sizeof attributes);
}

// Gives up all capabilities and the right to gain new ones: capabilities(7), PR_SET_NO_NEW_PRIVS(2const).
static inline int heimdallr_drop_capabilities(void) {
    struct { uint32_t version; int pid; } header = {0x20080522, 0};
    uint32_t none[6] = {0};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return -1;
    if (syscall(SYS_capset, &header, none) < 0) return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// Whether a file is a namespace: NS_GET_NSTYPE of ioctl_ns(2).
static inline int heimdallr_is_namespace(int descriptor) { return ioctl(descriptor, 0xB703) >= 0; }

// Opens a descriptor that is readable once the process has ended: pidfd_open(2). Linux 5.3.
static inline int heimdallr_open_process(int process) { return (int)syscall(434, process, 0); }

// Hides the process from debuggers of the same user: PR_SET_DUMPABLE(2const).
static inline int heimdallr_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// Makes orphans among the process's descendants its children: PR_SET_CHILD_SUBREAPER(2const).
static inline int heimdallr_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

// Installs a filter of system calls: seccomp(2). `instructions` is an array of struct sock_filter.
static inline int heimdallr_filter_calls(const uint64_t *instructions, unsigned short count) {
    struct { unsigned short count; const uint64_t *instructions; } program = {count, instructions};
    return prctl(PR_SET_SECCOMP, 2, &program, 0, 0);
}

// Sends bytes with descriptors, SCM_RIGHTS of unix(7). Returns the number of bytes sent, or -1.
static inline long heimdallr_send_descriptors(int link, const void *bytes, size_t size, const int *descriptors, int count) {
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int) * 253)]; } control = {0};
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count > 253) return -1;
    if (count > 0) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        __builtin_memcpy(CMSG_DATA(&control.header), descriptors, sizeof(int) * (size_t)count);
    }
    return sendmsg(link, &message, MSG_NOSIGNAL);
}

// Receives bytes with at most 253 descriptors, which are closed on exec. Returns the number of bytes, 0 at the end, or -1.
static inline long heimdallr_receive_descriptors(int link, void *bytes, size_t size, int *descriptors, int *count) {
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int) * 253)]; } control;
    struct iovec part = {bytes, size};
    struct msghdr message = {0};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.room;
    message.msg_controllen = sizeof control.room;
    *count = 0;
    long received = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
    if (received <= 0) return received;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        *count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        __builtin_memcpy(descriptors, CMSG_DATA(header), sizeof(int) * (size_t)*count);
    }
    return received;
}

// A datagram's sender, and the address that it was sent to, from which the answer goes out: IP_PKTINFO of ip(7),
// IPV6_RECVPKTINFO of ipv6(7).
struct heimdallr_datagram {
    struct sockaddr_storage peer;
    socklen_t peer_size;
    size_t control_size;
    union { struct cmsghdr header; char room[128]; } control;
};

static inline long heimdallr_receive_datagram(int socket, void *bytes, size_t size, struct heimdallr_datagram *from) {
    struct iovec part = {bytes, size};
    struct msghdr message = {0};
    message.msg_name = &from->peer;
    message.msg_namelen = sizeof from->peer;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = from->control.room;
    message.msg_controllen = sizeof from->control.room;
    long received = recvmsg(socket, &message, MSG_DONTWAIT);
    from->peer_size = message.msg_namelen;
    from->control_size = message.msg_controllen;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        // The kernel chooses the interface of the answer.
        if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo *information = (struct in_pktinfo *)(void *)CMSG_DATA(header);
            information->ipi_spec_dst = information->ipi_addr;
            information->ipi_ifindex = 0;
        }
    }
    return received;
}

static inline long heimdallr_send_datagram(int socket, const void *bytes, size_t size, struct heimdallr_datagram *to) {
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {0};
    message.msg_name = &to->peer;
    message.msg_namelen = to->peer_size;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = to->control.room;
    message.msg_controllen = to->control_size;
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Numbers of the system calls that the filter knows, and the architecture's own: seccomp(2), AUDIT_ARCH_X86_64 …
static const uint32_t heimdallr_call_socket = SYS_socket;
static const uint32_t heimdallr_call_ioctl = SYS_ioctl;
#if defined(__x86_64__)
static const uint32_t heimdallr_architecture = 0xC000003E;
#elif defined(__aarch64__)
static const uint32_t heimdallr_architecture = 0xC00000B7;
#else
static const uint32_t heimdallr_architecture = 0;
#endif

#endif
