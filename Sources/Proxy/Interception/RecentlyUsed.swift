/// A cache of at most `limit` values by name. The last `limit / 2` names used are always kept.
struct RecentlyUsed<Value> {
    private let half: Int
    private var newer: [String: Value] = [:]
    private var older: [String: Value] = [:]

    init(limit: Int) { half = max(1, limit / 2) }

    var count: Int { newer.count + older.count }

    mutating func value(for name: String) -> Value? {
        if let value = newer[name] { return value }
        guard let value = older[name] else { return nil }
        set(value, for: name)
        return value
    }

    mutating func set(_ value: Value, for name: String) {
        older[name] = nil
        if newer[name] == nil, newer.count >= half {
            older = newer
            newer = [:]
        }
        newer[name] = value
    }
}
