/// A table of texts that a target embeds: a line for each row, with tabs between the cells.
public enum TextTable {
    /// - Returns: the rows that have this number of cells.
    public static func rows(_ bytes: [UInt8], columns: Int) -> [[String]] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            .map { $0.split(separator: "\t").map { String($0) } }.filter { $0.count == columns }
    }
}
