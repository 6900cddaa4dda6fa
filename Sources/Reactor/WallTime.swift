import CLinux
import Glibc

/// Seconds and nanoseconds since 1970, UTC.
public struct WallTime: Sendable, Equatable {
    public var seconds: Int
    public var nanoseconds: Int

    public init(seconds: Int, nanoseconds: Int) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    public static func + (time: WallTime, duration: Duration) -> WallTime {
        let sum = duration.wholeNanoseconds % 1_000_000_000 + Int64(time.nanoseconds)
        let carry = sum < 0 ? -1 : sum / 1_000_000_000
        return WallTime(
            seconds: time.seconds + Int(duration.wholeNanoseconds / 1_000_000_000 + carry),
            nanoseconds: Int(sum - carry * 1_000_000_000))
    }

    public static func - (time: WallTime, duration: Duration) -> WallTime { time + (.zero - duration) }

    public static var now: WallTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }
}
