// Every pointer here lives for the one call it is passed to.
import CLinux
import Glibc
import Synchronization

/// The terminal of the person who runs a command.
enum Terminal {
    /// Whether standard error is a terminal. isatty(3).
    static var isStandardError: Bool { isatty(STDERR_FILENO) == 1 }
    static var isStandardOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var isStandardInput: Bool { isatty(STDIN_FILENO) == 1 }

    /// Replaces the progress line on standard error, if that is a terminal.
    static func showProgress(_ text: String) {
        if isStandardError { OutputDescriptor.standardError.write("\r\u{1B}[K\(text)") }
    }

    /// Reads one line without its line end; `nil` at the end of input, after Ctrl-C, or if the line exceeds `limit`.
    static func readLine(limit: Int = 16 * 1024) -> String? {
        var line: [UInt8] = []
        while line.count <= limit {
            var byte: UInt8 = 0
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR, !Interruption.hasCome { continue }
            guard count == 1 else { return line.isEmpty || count < 0 ? nil : String(decoding: line, as: UTF8.self) }
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            if byte != UInt8(ascii: "\r") { line.append(byte) }
        }
        return nil
    }

    /// Reads a pasted text, with all lines that arrive together. Reads no lines from a terminal (`ICANON`), because the
    /// kernel cuts a line at 4,095 bytes. termios(3).
    /// - Parameter prompt: is written when the terminal is ready.
    /// - Returns: the first `limit` bytes; `nil` at the end of input, and after Ctrl-C.
    static func readPaste(_ prompt: String, limit: Int = 60 * 1024) -> String? {
        var before = termios()
        let isTerminal = unsafe tcgetattr(STDIN_FILENO, &before) == 0
        if isTerminal {
            var raw = before
            raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
            _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        }
        defer { if isTerminal { _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &before) } }
        OutputDescriptor.standardError.write(prompt + "\n")
        var paste = Paste(limit: limit)
        while !paste.isAtLineEnd || hasInput(withinMilliseconds: 300) {
            var byte: UInt8 = 0
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR, !Interruption.hasCome { continue }
            guard count >= 0 else { return nil }
            let isEnd = count == 0 || isTerminal && byte == Paste.endOfTransmission
            guard !isEnd else { return paste.bytes.isEmpty ? nil : paste.text }
            let echo = paste.take(byte, isTyped: isTerminal)
            if isTerminal { OutputDescriptor.standardError.write(echo) }
        }
        return Interruption.hasCome ? nil : paste.text
    }

    /// poll(2).
    private static func hasInput(withinMilliseconds limit: Int32) -> Bool {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&input, 1, limit) == 1 && input.revents & Int16(POLLIN) != 0
    }

    /// Reads a line without echo. termios(3).
    static func readSecretLine() -> String? {
        var before = termios()
        guard unsafe tcgetattr(STDIN_FILENO, &before) == 0 else { return readLine() }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        silent.c_lflag |= tcflag_t(ECHONL)
        _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer { _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) }
        return readLine()
    }

    /// The size of the terminal of standard output; 24 by 80 if it is unknown.
    static var size: (rows: Int, columns: Int) {
        var rows: UInt16 = 0
        var columns: UInt16 = 0
        guard unsafe heimdallr_window_size(STDOUT_FILENO, &rows, &columns) == 0, rows > 1, columns > 1 else {
            return (24, 80)
        }
        return (Int(rows), Int(columns))
    }

    /// Columns of the terminal of standard error; 80 if they are unknown.
    static var columns: Int {
        var rows: UInt16 = 0
        var columns: UInt16 = 0
        guard unsafe heimdallr_window_size(STDERR_FILENO, &rows, &columns) == 0, columns > 0 else { return 80 }
        return Int(columns)
    }

    /// Whether the locale's characters are UTF-8, which is also assumed without a locale. locale(7).
    static var showsUnicode: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { ProcessEnvironment.value(of: $0) }
            .first { !$0.isEmpty }
        return locale.map { $0.lowercased().replacing("-", with: "").contains("utf8") } ?? true
    }

    /// Sleeps, and returns early after Ctrl-C. nanosleep(2).
    static func pause(seconds: Int) {
        var time = timespec(tv_sec: seconds, tv_nsec: 0)
        _ = unsafe nanosleep(&time, nil)
    }
}

/// Ctrl-C in a command that must clean up before it ends.
enum Interruption {
    private static let flag = Atomic(false)

    static var hasCome: Bool { flag.load(ordering: .relaxed) }

    /// Makes SIGINT and SIGTERM interrupt blocking calls instead of ending the process. sigaction(2).
    static func watch() {
        // Initializes the flag before the handler needs it.
        _ = hasCome
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in Interruption.flag.store(true, ordering: .relaxed) }
        action.sa_flags = 0
        for number in [SIGINT, SIGTERM] { _ = unsafe sigaction(number, &action, nil) }
    }
}
