/// Suggestions for misspelt names ("did you mean"): the nearest known name, if it is near enough.
public enum Suggestion {
    /// Keys of other products, each with our key of the same meaning.
    private static let otherNames = [
        "token_url": "token_endpoint", "token_uri": "token_endpoint", "id": "client_id", "secret": "client_secret",
        "auth_method": "token_endpoint_auth_method", "target": "url", "verbs": "methods", "user": "username",
        "insecure": "allow_plaintext", "basic": "client_secret_basic", "post": "client_secret_post",
        "replace_existing": "on_existing", "extra": "params", "bind": "listen", "address": "listen",
    ]

    /// - Parameter limit: largest distance; `nil`: a third of the name's length.
    public static func nearest(to written: String, among known: [String], within limit: Int? = nil) -> String? {
        let folded = fold(written)
        if let same = known.first(where: { fold($0) == folded }) { return same }
        if let other = otherNames[folded], known.contains(other) { return other }
        let limit = limit ?? max(1, folded.utf8.count / 3)
        let ranked = known.map {
            (name: $0, distance: distance(Array(folded.utf8).span, Array(fold($0).utf8).span))
        }
        guard let best = ranked.min(by: { $0.distance < $1.distance }), best.distance <= limit else { return nil }
        return best.name
    }

    /// Returns `; did you mean "client"?`, or an empty text.
    static func phrase(for written: String, among known: [String]) -> String {
        phrase(nearest(to: written, among: known))
    }

    public static func phrase(_ meant: String?) -> String { meant.map { "; did you mean \"\($0)\"?" } ?? "" }

    private static func fold(_ name: String) -> String {
        String(name.lowercased().map { $0 == "-" || $0 == " " ? "_" : $0 })
    }

    /// Counts the insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
    /// - Returns: `Int.max` if one of the names has more than 64 bytes.
    package static func distance(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        guard left.count <= 64, right.count <= 64 else { return .max }
        var before: [Int] = []
        var above = Array(0...right.count)
        for row in left.indices {
            var current = [row + 1]
            for column in right.indices {
                var cost = min(
                    above[column + 1] + 1, current[column] + 1, above[column] + (left[row] == right[column] ? 0 : 1))
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, before[column - 1] + 1)
                }
                current.append(cost)
            }
            before = above
            above = current
        }
        return above[right.count]
    }
}
