import Synchronization

/// Standard output of a command. A command whose output can't be written has failed. Any thread.
enum CommandOutput {
    private static let fault = Mutex<SystemCallError?>(nil)

    /// Blocks until all bytes are written or a write fails.
    /// - Parameter endsWithReader: whether the end of the output's reader is no fault, because the command writes until
    ///   nobody reads.
    /// - Returns: `false` after a failure. The command may end early then.
    @discardableResult
    static func write(_ bytes: [UInt8], endsWithReader: Bool = false) -> Bool {
        guard let failure = OutputDescriptor.standardOutput.put(bytes).failure else { return true }
        if !(endsWithReader && failure.meansNoReader) { fault.withLock { $0 = $0 ?? failure } }
        return false
    }

    @discardableResult
    static func write(_ text: String, endsWithReader: Bool = false) -> Bool {
        write(Array(text.utf8), endsWithReader: endsWithReader)
    }

    /// Prints the first failure of a write, if there was one.
    /// - Returns: the exit code of the process. A command whose result nobody could read has failed.
    static func exitCode(_ status: ExitStatus) -> Int32 {
        guard let fault = fault.withLock({ $0 }) else { return status.rawValue }
        ErrorOutput.error("standard output can't be written: \(fault.sentence)")
        return (status == .success || status == .problemReported ? .failure : status).rawValue
    }
}
