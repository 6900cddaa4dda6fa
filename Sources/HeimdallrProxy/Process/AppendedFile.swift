// A file's own calls, all in this file: each takes a pointer, which strict memory safety wants marked. Every pointer here
// lives for the one call it is passed to.
import Glibc
import Synchronization

/// What takes finished lines.
protocol LineOutput: Sendable {
    /// Blocks until all is written, or can't be.
    /// - Returns: how many of the bytes are done with; the others can be given again, as far as they are whole lines.
    func take(_ bytes: [UInt8]) -> Int
}

extension OutputDescriptor: LineOutput {
    /// Several write to standard error, each in whole lines.
    private static let turn = Mutex(())

    /// What nobody reads any more is done with.
    func take(_ bytes: [UInt8]) -> Int {
        Self.turn.withLock { _ in _ = write(bytes) }
        return bytes.count
    }
}

/// Why a file is not appended to.
enum AppendedFileFault: Error {
    /// open(2) refuses, or it is no plain file.
    case call(SystemCallError)
    /// Somebody else has a hand in it; with what to do.
    case notOurs(String)
}

/// A file that lines are appended to, and that somebody else may move away meanwhile. Any thread.
final class AppendedFile: LineOutput {
    private struct State {
        var descriptor: Int32
        /// It ends within a line.
        var isTorn = false
        var isFailing = false
    }

    let path: String
    private let state: Mutex<State>
    private let changed: @Sendable (SystemCallError?) -> Void

    /// - Parameter changed: told when it can't be written any more, and (`nil`) when it can again.
    init(path: String, changed: @escaping @Sendable (SystemCallError?) -> Void) throws(AppendedFileFault) {
        self.path = path
        self.changed = changed
        state = Mutex(State(descriptor: try Self.open(path)))
    }

    deinit { _ = Glibc.close(state.withLock { $0.descriptor }) }

    /// Through no symbolic link, and nothing that open(2) or write(2) would wait for: a pipe without a reader, a device.
    /// Nothing that somebody else could change, or has laid at the path for us to write to.
    private static func open(_ path: String, making: Int32 = O_CREAT) throws(AppendedFileFault) -> Int32 {
        let flags = O_WRONLY | O_APPEND | making | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = unsafe Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw .call(SystemCallError(number: errno)) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            _ = Glibc.close(descriptor)
            throw .call(SystemCallError(number: EINVAL))
        }
        if let fault = fault(
            owner: status.st_uid, mode: status.st_mode, links: UInt64(status.st_nlink), user: geteuid())
        {
            _ = Glibc.close(descriptor)
            throw .notOurs(fault)
        }
        return descriptor
    }

    /// Finds what keeps the file from being opened, and neither makes nor writes one.
    static func check(_ path: String) throws(AppendedFileFault) {
        do throws(AppendedFileFault) {
            _ = Glibc.close(try open(path, making: 0))
        } catch {
            guard case .call(let fault) = error, fault.number == ENOENT else { throw error }
            let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            guard unsafe access(folder, W_OK | X_OK) == 0 else { throw .call(SystemCallError(number: errno)) }
        }
    }

    /// Why a file that is there is not written to, and what to do.
    static func fault(owner: UInt32, mode: UInt32, links: UInt64, user: UInt32) -> String? {
        if owner != user, owner != 0 {
            return
                "it belongs to user \(owner), who can change what is written: have it belong to user \(user), who the "
                + "proxy runs as, or to root (chown), or move it away"
        }
        if mode & 0o022 != 0 {
            return "its group or everybody may write to it: take that away with chmod go-w"
        }
        if links > 1 { return "it has \(links) names (hard links): move it away, so that a new one is made" }
        return nil
    }

    /// From now on what is at the path is written to.
    func reopen() throws(AppendedFileFault) {
        let next = try Self.open(path)
        let before = state.withLock { state in
            defer { state = State(descriptor: next, isFailing: state.isFailing) }
            return state.descriptor
        }
        _ = Glibc.close(before)
    }

    func take(_ bytes: [UInt8]) -> Int {
        let (count, news) = state.withLock { state -> (Int, SystemCallError??) in
            var failure: SystemCallError?
            if state.isTorn, Self.write([UInt8(ascii: "\n")], state.descriptor, &failure) == 1 { state.isTorn = false }
            var count = 0
            if failure == nil { count = Self.write(bytes, state.descriptor, &failure) }
            if count > 0, bytes[count - 1] != UInt8(ascii: "\n") { state.isTorn = true }
            let isNews = (failure != nil) != state.isFailing
            state.isFailing = failure != nil
            return (count, isNews ? .some(failure) : nil)
        }
        if let news { changed(news) }
        return count
    }

    /// - Returns: how many bytes were written before the first failure.
    private static func write(_ bytes: [UInt8], _ descriptor: Int32, _ failure: inout SystemCallError?) -> Int {
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if written >= 0 {
                start += written
            } else if errno != EINTR {
                failure = SystemCallError(number: errno)
                return start
            }
        }
        return start
    }
}
