/// Settings of the log.
public struct LogSettings: Sendable, Equatable {
    public enum Level: String, Sendable, Equatable, CaseIterable { case trace, debug, info, notice, warning, error }
    public enum Format: String, Sendable, Equatable, CaseIterable { case text, json }
    public var level = Level.info
    public var format = Format.text
    public var access = true
}
