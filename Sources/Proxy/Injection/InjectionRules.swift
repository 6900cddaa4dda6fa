import Configuration
import HTTPMessage
import WireText

/// An upstream's rules for credentials and fields, prepared for judging and writing requests: `inject`, `on_existing`,
/// `require_placeholder`, `set_headers` and `remove_headers`. No I/O.
final class InjectionRules: Sendable {
    enum Target: Sendable {
        /// - Parameters:
        ///   - name: letters and digits of the name (`MangledName.plain`).
        ///   - line: text in front of the value, such as `Authorization: `.
        case field(name: [UInt8], line: [UInt8])
        case parameter([UInt8])
        /// AWS Signature Version 4.
        case signature

        /// Names of the fields that this entry sets, as `MangledName.plain` returns them.
        var fields: [[UInt8]] {
            switch self {
            case .field(let name, _): [name]
            case .parameter: []
            case .signature: Self.signatureFields
            }
        }

        var parameters: [[UInt8]] {
            switch self {
            case .field: []
            case .parameter(let name): [name]
            case .signature: Self.presigned
            }
        }

        static let signatureFields = [
            "authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token",
        ].map { MangledName.plain($0) }
        static let presigned = [
            "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Algorithm", "X-Amz-Date", "X-Amz-Expires",
            "X-Amz-SignedHeaders", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
        ].map { Array($0.utf8) }
    }

    let targets: [Target]
    let all: EntrySet
    let tokens: EntrySet
    private let parameters: EntrySet
    /// Lines of `set_headers`.
    let setLines: [UInt8]
    /// Names in `set_headers` and `remove_headers`, as `MangledName.plain` returns them.
    private let editedNames: [[UInt8]]
    private let editedFields: FieldNames
    private let droppedWithAll: FieldNames
    private let provesPossession: Bool
    private let onExisting: UpstreamSettings.OnExisting
    /// Text of `require_placeholder`; `nil`: every request gets the credential.
    private let placeholder: Placeholder?

    init(_ settings: UpstreamSettings) {
        targets = settings.injections.map { injection in
            switch injection {
            case .query(let name, _): .parameter(Array(name.utf8))
            case .sigv4: .signature
            case .header, .basic:
                .field(name: MangledName.plain(injection.name), line: Array("\(injection.name): ".utf8))
            }
        }
        func entries(_ fits: (UpstreamSettings.Injection) -> Bool) -> EntrySet {
            settings.injections.enumerated().reduce(into: []) { set, entry in
                if fits(entry.element) { set.insert(EntrySet(index: entry.offset)) }
            }
        }
        all = entries { _ in true }
        tokens = entries(\.takesToken)
        parameters = entries(\.isQuery)
        provesPossession = settings.provesPossession
        setLines = settings.setHeaders.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
        editedNames = (settings.setHeaders.map(\.name) + settings.removeHeaders).map { MangledName.plain($0) }
        editedFields = FieldNames(editedNames)
        droppedWithAll = FieldNames(targets.flatMap(\.fields) + (provesPossession ? [Self.proof] : []) + editedNames)
        onExisting = settings.onExisting
        placeholder = settings.placeholder.map { settings.takesIssued ? .issued : Placeholder($0) }
    }

    private static let proof = Array("dpop".utf8)

    /// Returns the names of the program's fields that are not sent: those that `entries`, a DPoP proof or `set_headers`
    /// replaces, and those in `remove_headers`.
    func dropped(_ entries: EntrySet) -> FieldNames {
        if entries == all { return droppedWithAll }
        if entries.isEmpty { return editedFields }
        let proof = provesPossession && !entries.isDisjoint(with: tokens) ? [Self.proof] : []
        let replaced = targets.indices.flatMap { entries.contains(index: $0) ? targets[$0].fields : [] }
        return FieldNames(replaced + proof + editedNames)
    }

    func hasParameters(_ entries: EntrySet) -> Bool { !entries.isDisjoint(with: parameters) }

    /// Whether the query changes, because a parameter is added or the program's own signature is removed.
    func changesQuery(_ target: Span<UInt8>, for entries: EntrySet) -> Bool {
        if hasParameters(entries) { return true }
        for index in targets.indices where entries.contains(index: index) {
            guard case .signature = targets[index] else { continue }
            for name in Target.presigned {
                var isThere = false
                QueryInjection.forEachValue(of: name, in: target) { _ in isThere = true }
                if isThere { return true }
            }
        }
        return false
    }

    /// Whether `entries` replace this parameter of the query.
    func names(_ parameter: Span<UInt8>, in entries: EntrySet) -> Bool {
        for index in targets.indices where entries.contains(index: index) {
            for name in targets[index].parameters where QueryInjection.nameEquals(parameter, name) { return true }
        }
        return false
    }

    // MARK: Choosing the entries of a request

    func judge(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm
    ) throws(Problem) -> Admitted.Credential {
        guard !all.isEmpty, head.methodKind != .trace else { return .none }
        guard placeholder != nil || onExisting != .replace else {
            if case .asterisk = target, !parameters.isEmpty { throw Problem(.queryNeeded) }
            return .put(all)
        }
        var put = all
        var isWanted = placeholder == nil
        var hasOwn = false
        for index in targets.indices {
            let found = find(targets[index], head, bytes, target)
            if found == .placeholder { isWanted = true }
            guard found == .own else { continue }
            hasOwn = true
            if onExisting == .keep { put.remove(EntrySet(index: index)) }
        }
        guard isWanted else { return .none }
        if hasOwn, onExisting == .reject { throw Problem(.ownCredential) }
        guard !put.isEmpty else { return .kept }
        if case .asterisk = target, hasParameters(put) { throw Problem(.queryNeeded) }
        return .put(put)
    }

    private enum Found {
        case nothing
        case placeholder
        /// The program's own credential.
        case own
    }

    /// Returns the issued placeholders that a credential replaces.
    func issued(_ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for entry in targets {
            switch entry {
            case .field(let name, _):
                for field in head.fields where !field.isHopByHop && bytes[field.name].mayName(field: name) {
                    _ = placeholder?.isIn(fieldValue: bytes[field.value]) { found.append([UInt8](copying: $0)) }
                }
            case .parameter(let name):
                guard case .path(let path) = target else { break }
                QueryInjection.forEachValue(of: name, in: bytes[path]) { value in
                    guard placeholder?.isParameter(value) == true else { return }
                    found.append(PercentEncoding.form.decodeBytes([UInt8](copying: value)) ?? [])
                }
            case .signature:
                let name = Target.signatureFields[0]
                for field in head.fields where !field.isHopByHop && bytes[field.name].mayName(field: name) {
                    let value = bytes[field.value]
                    _ = placeholder?.isIn(fieldValue: value) { found.append([UInt8](copying: $0)) }
                    _ = placeholder?.isSigner(of: value) { found.append([UInt8](copying: $0)) }
                }
                guard case .path(let path) = target else { break }
                QueryInjection.forEachValue(of: Target.presigned[1], in: bytes[path]) { value in
                    _ = placeholder?.isSigner(inParameter: value) { found.append([UInt8](copying: $0)) }
                }
            }
        }
        return found
    }

    /// Looks for a credential of the program at the target of this entry.
    private func find(_ entry: Target, _ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm) -> Found {
        var found = Found.nothing
        func note(_ isPlaceholder: Bool) {
            if found != .own { found = isPlaceholder ? .placeholder : .own }
        }
        switch entry {
        case .field(let name, _):
            // The upstream does not receive a field that Connection names, so such a field is no credential.
            for field in head.fields where !field.isHopByHop && bytes[field.name].mayName(field: name) {
                note(placeholder?.isIn(fieldValue: bytes[field.value]) ?? false)
            }
        case .parameter(let name):
            guard case .path(let path) = target else { return .nothing }
            QueryInjection.forEachValue(of: name, in: bytes[path]) {
                note(placeholder?.isParameter($0) ?? false)
            }
        case .signature:
            for field in head.fields
            where !field.isHopByHop && bytes[field.name].mayName(field: Target.signatureFields[0]) {
                let value = bytes[field.value]
                note(placeholder.map { $0.isIn(fieldValue: value) || $0.isSigner(of: value) } ?? false)
            }
            guard case .path(let path) = target else { return found }
            var isSigned = false
            QueryInjection.forEachValue(of: Target.presigned[0], in: bytes[path]) { _ in isSigned = true }
            guard isSigned else { return found }
            // If the parameter is repeated, every value must be the placeholder.
            var isPlaceholder: Bool?
            QueryInjection.forEachValue(of: Target.presigned[1], in: bytes[path]) {
                isPlaceholder = (isPlaceholder ?? true) && (placeholder?.isSigner(inParameter: $0) ?? false)
            }
            note(isPlaceholder ?? false)
        }
        return found
    }
}
