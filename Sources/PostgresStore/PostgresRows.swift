import CLibpq

/// Result of a statement, in the server's binary format.
struct PostgresRows {
    private var rows: [[[UInt8]?]] = []
    /// The server's command tag: `UPDATE 1`.
    private(set) var tag = ""

    /// Limits of an answer, far above the size of the store's answers.
    private static let maxBytes = 16 << 20
    private static let maxRows = 100_000

    init() {}

    init(_ result: OpaquePointer, _ libpq: Libpq.Table) throws(PostgresFault) {
        var size = 0
        let (count, width) = (unsafe libpq.call.PQntuples(result), unsafe libpq.call.PQnfields(result))
        guard count <= Self.maxRows, width <= 16 else { throw .lost("the server's answer is too large") }
        for row in 0..<count {
            for column in 0..<width { size += Int(unsafe libpq.call.PQgetlength(result, row, column)) }
        }
        guard size <= Self.maxBytes else { throw .lost("the server's answer is too large") }
        tag = unsafe libpq.call.PQcmdStatus(result).map { unsafe String(cString: $0) } ?? ""
        for row in 0..<count {
            rows.append(
                (0..<width).map { column in
                    guard unsafe libpq.call.PQgetisnull(result, row, column) == 0,
                        let value = unsafe libpq.call.PQgetvalue(result, row, column)
                    else { return nil }
                    let count = Int(unsafe libpq.call.PQgetlength(result, row, column))
                    return unsafe Array(UnsafeRawBufferPointer(start: value, count: max(0, count)))
                })
        }
    }

    var count: Int { rows.count }

    func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
        guard rows.indices.contains(row), rows[row].indices.contains(column) else { return nil }
        return rows[row][column]
    }

    /// Reads an int2, int4 or int8.
    func integer(_ row: Int, _ column: Int) -> Int64? {
        guard let bytes = bytes(row, column), [2, 4, 8].contains(bytes.count) else { return nil }
        var value: Int64 = bytes[0] & 0x80 == 0 ? 0 : -1
        for byte in bytes { value = value << 8 | Int64(byte) }
        return value
    }

    func text(_ row: Int, _ column: Int) -> String? { bytes(row, column).map { String(decoding: $0, as: UTF8.self) } }

    func flag(_ row: Int, _ column: Int) -> Bool { bytes(row, column) == [1] }
}
