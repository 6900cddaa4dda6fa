import Glibc

/// The time of day, for what outlives the process: records on disk and HTTP dates. Never for deadlines.
public enum WallClock {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    public static func now() -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec)
    }
}
