import FileSystem
import Glibc
import Reactor
import Reports

/// Resources that this process uses (proc(5)). A value is `nil` if unknown; most are unknown without /proc.
struct ProcessUsage: Sendable, Equatable {
    /// User and system CPU time of all threads.
    var cpuSeconds: Double?
    var residentBytes: Int?
    var virtualBytes: Int?
    var threads: Int?
    var openDescriptors: Int?
    /// `nil` without a limit.
    var descriptorLimit: Int?
    /// In seconds since 1970.
    var startTime: Double?

    /// Blocks while it reads /proc.
    static var current: ProcessUsage {
        var usage = ProcessUsage(stat: ownStat, pageSize: sysconf(Int32(_SC_PAGESIZE)))
        // CPU time of the process in microseconds (clock(3)), finer than the ticks of /proc.
        let time = clock()
        if time >= 0 { usage.cpuSeconds = Double(time) / 1e6 }
        let descriptors = FileSystem.names(in: "/proc/self/fd").count
        // Without the descriptor that reads the folder.
        if descriptors > 0 { usage.openDescriptors = descriptors - 1 }
        if DescriptorLimit.current != .max { usage.descriptorLimit = DescriptorLimit.current }
        usage.startTime = begin
        return usage
    }

    /// - Parameters:
    ///   - stat: the line of /proc/self/stat. The program's name in it may contain any characters.
    ///   - pageSize: in bytes.
    init(stat: String, pageSize: Int) {
        guard let end = stat.lastIndex(of: ")") else { return }
        // The field after the name is number 3 of proc(5).
        let fields = stat[stat.index(after: end)...].split { $0 == " " || $0 == "\n" }
        func field(_ number: Int) -> Int? { number - 3 < fields.count ? Int(fields[number - 3]) : nil }
        threads = field(20)
        startTicks = field(22)
        virtualBytes = field(23)
        residentBytes = field(24).flatMap {
            $0.multipliedReportingOverflow(by: pageSize).overflow ? nil : $0 * pageSize
        }
    }

    private static var ownStat: String {
        String(decoding: (try? FileSystem.read("/proc/self/stat", limit: 4096)) ?? [], as: UTF8.self)
    }

    /// Start of the process, in clock ticks since the machine's boot.
    private var startTicks: Int?

    /// Start of the process in seconds since 1970. Computed once, because the wall clock may be set later.
    private static let begin: Double? = {
        let usage = ProcessUsage(stat: ownStat, pageSize: 1)
        let ticks = sysconf(Int32(_SC_CLK_TCK))
        guard let start = usage.startTicks, ticks > 0 else { return nil }
        let age = Double(LoopTime.current().nanoseconds) / 1e9 - Double(start) / Double(ticks)
        let now = WallTime.now
        return Double(now.seconds) + Double(now.nanoseconds) / 1e9 - age
    }()
}

extension MetricsPage {
    func writeProcess(_ output: inout PrometheusText) {
        output.family(
            "heimdallr_build_info", .gauge, "Always 1; its label is the version.", [.init(["version": version], 1)])
        guard let process else { return }
        output.family(
            "process_cpu_seconds_total", .counter, "User and system CPU time of the process.", process.cpuSeconds)
        output.family(
            "process_resident_memory_bytes", .gauge, "Memory of the process in RAM.", process.residentBytes)
        output.family(
            "process_virtual_memory_bytes", .gauge, "Virtual memory of the process.", process.virtualBytes)
        output.family(
            "process_open_fds", .gauge, "Files and sockets that the process has open.", process.openDescriptors)
        output.family(
            "process_max_fds", .gauge, "Files and sockets that the process may have open.", process.descriptorLimit)
        output.family("process_threads", .gauge, "Threads of the process.", process.threads)
        output.family(
            "process_start_time_seconds", .gauge, "When the process was started, in seconds since 1970.",
            process.startTime)
    }
}
