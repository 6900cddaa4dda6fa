internal import CLibqrencode
import Glibc

/// A QR code (ISO/IEC 18004) for a telephone's camera: rows of dark and light modules. Uses libqrencode. Any thread.
public struct QRCode: Sendable, Equatable {
    /// Number of rows, and of modules in a row, without the quiet zone.
    public let width: Int
    /// Modules, row by row; `true` for a dark module.
    private let modules: [Bool]

    /// Limit of the text in bytes. Cameras fail to read larger codes from a screen.
    public static let maxLength = 512

    /// Makes the smallest code with error correction level M that holds `text` as UTF-8.
    /// - Returns: `nil` when the text is empty, longer than `maxLength` bytes, or holds a zero byte.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.maxLength, !bytes.contains(0) else { return nil }
        // QRcode_encodeData of qrencode.h; version 0 chooses the smallest size. The caller frees the result.
        let made = unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe QRcode_encodeData(Int32(buffer.count), buffer.baseAddress, 0, QR_ECLEVEL_M)
        }
        guard let code = unsafe made else { return nil }
        defer { unsafe QRcode_free(code) }
        let width = Int(unsafe code.pointee.width)
        guard width > 0, let data = unsafe code.pointee.data else { return nil }
        self.width = width
        // The lowest bit of each byte is the module.
        modules = unsafe UnsafeBufferPointer(start: data, count: width * width).map { $0 & 1 == 1 }
    }

    /// Whether a module is dark. Modules outside the code are light, like the quiet zone.
    public func isDark(row: Int, column: Int) -> Bool {
        guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
        return modules[row * width + column]
    }

    /// The light border that readers need, in modules (ISO/IEC 18004 section 6.3.8).
    public static let quietZone = 4

    /// The dark modules as one SVG path, with one unit per module, for a square view box of `extent` units.
    public var svgPath: String {
        var path = ""
        for row in 0..<width {
            var column = 0
            while column < width {
                guard isDark(row: row, column: column) else {
                    column += 1
                    continue
                }
                let start = column
                while isDark(row: row, column: column) { column += 1 }
                let run = column - start
                path += "M\(start + Self.quietZone) \(row + Self.quietZone)h\(run)v1h-\(run)z"
            }
        }
        return path
    }

    /// Modules in a row, including the quiet zone.
    public var extent: Int { width + 2 * Self.quietZone }

    /// Width of the light border in a terminal, in modules.
    private static let terminalZone = 2

    /// Columns of `terminalText`.
    public var terminalColumns: Int { width + 2 * Self.terminalZone }

    /// The code as half blocks, two rows of modules per line, black on white in every terminal theme (ECMA-48 SGR).
    public var terminalText: String {
        var text = ""
        let zone = Self.terminalZone
        for row in stride(from: -zone, to: width + zone, by: 2) {
            text += "\u{1B}[30;107m"
            for column in -zone..<width + zone {
                switch (isDark(row: row, column: column), isDark(row: row + 1, column: column)) {
                case (true, true): text += "█"
                case (true, false): text += "▀"
                case (false, true): text += "▄"
                case (false, false): text += " "
                }
            }
            text += "\u{1B}[0m\n"
        }
        return text
    }
}
