import Glibc

/// Limit of files and sockets that this process may have open at once: the soft RLIMIT_NOFILE of getrlimit(2).
public enum DescriptorLimit {
    public static var current: Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        return Int(clamping: limit.rlim_cur)
    }
}
