import Configuration
import HTTPMessage
import WireText

/// Names of fields and parameters that make servers use another method or path. Compares names as `MangledName` does.
/// Pure.
enum Overrides {
    /// Whether the query of a target has a parameter that overrides the method.
    static func hasMethodParameter(_ target: Span<UInt8>) -> Bool {
        var start = target.position(of: UInt8(ascii: "?")) + 1
        guard start <= target.count else { return false }
        var name: [UInt8] = []
        while start <= target.count {
            var index = start
            name.removeAll(keepingCapacity: true)
            var isName = true
            // Some servers also split at semicolons (HTML 4.01, B.2.2).
            while index < target.count, target[index] != UInt8(ascii: "&"), target[index] != UInt8(ascii: ";") {
                if target[index] == UInt8(ascii: "=") { isName = false }
                if isName { append(target[index], to: &name) }
                index += 1
            }
            if isMethod(parameter: name) { return true }
            start = index + 1
        }
        return false
    }

    /// Appends a byte, and decodes the percent escape that the byte completes. The decoded byte may complete a further
    /// escape, which is decoded too.
    static func append(_ byte: UInt8, to name: inout [UInt8]) {
        name.append(byte)
        while true {
            let count = name.count
            if count >= 6, name[count - 6] == UInt8(ascii: "%"), name[count - 5] | 0x20 == UInt8(ascii: "u"),
                let page = value(name[count - 4], name[count - 3]), let low = value(name[count - 2], name[count - 1])
            {
                name.removeLast(6)
                name.append(page == 0 ? low : 0xFF)
            } else if count >= 3, name[count - 3] == UInt8(ascii: "%"),
                let byte = value(name[count - 2], name[count - 1])
            {
                name.removeLast(3)
                name.append(byte)
            } else {
                return
            }
        }
    }

    private static func value(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = ASCII.hexValue(high), let low = ASCII.hexValue(low) else { return nil }
        return high << 4 | low
    }

    /// - Parameter name: decoded name of a parameter.
    private static func isMethod(parameter name: [UInt8]) -> Bool {
        var end = 0
        // PHP reads `_method[]` as `_method`. A name ends at NUL. An escaped equals sign ends it too.
        while end < name.count, name[end] != 0, name[end] != UInt8(ascii: "=") {
            if end > 0, name[end] == UInt8(ascii: "[") { break }
            end += 1
        }
        return isMethod(name.span.extracting(0..<end))
    }

    private static func isMethod(_ name: Span<UInt8>) -> Bool {
        if isOne(of: methods, name) { return true }
        // `_method` and `$httpMethod` override the method; `method` and `httpMethod` may be ordinary parameters.
        guard !name.isEmpty, !ASCII.isAlphanumeric(name[0]) else { return false }
        return isOne(of: markedMethods, name)
    }

    private static func isOne(of names: [[UInt8]], _ name: Span<UInt8>) -> Bool {
        names.contains { name.mayName(field: $0) }
    }

    private static let methods = [
        "xhttpmethodoverride", "xhttpmethod", "xmethodoverride", "xhttpverb", "xhttpverboverride", "xoriginalmethod",
        "xrewritemethod", "xforwardedmethod", "httpmethodoverride", "methodoverride",
    ].map { Array($0.utf8) }
    private static let markedMethods = ["method", "httpmethod"].map { Array($0.utf8) }
    private static let paths = [
        "xoriginalurl", "xoriginaluri", "xrewriteurl", "xrewriteuri", "xoverrideurl", "xoverrideuri", "xforwardeduri",
        "xforwardedurl", "xforwardedpath", "xforwardedprefix", "xoriginalpath", "xscriptname",
    ].map { Array($0.utf8) }
}

// Checks of the parts of a request from which a server may take another method or path.
extension Overrides {
    /// - Parameter admitted: result of admission so far, with the upstream.
    static func refuse(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rule: UpstreamRule, _ admitted: Admitted
    ) throws(Problem) {
        if !rule.settings.methods.isEmpty {
            // Frameworks accept the method from a field or a parameter, which would bypass `methods`.
            if hasField(head, bytes, where: { isMethod($0) }) { throw Problem(.methodOverride) }
            if case .path(let path) = admitted.target, hasMethodParameter(bytes[path]) {
                throw Problem(.methodOverride)
            }
        }
        guard !rule.settings.paths.isEmpty || !rule.pathPrefix.isEmpty else { return }
        if hasField(head, bytes, where: { isOne(of: paths, $0) }) { throw Problem(.pathOverride) }
        guard head.index(of: .destination) != nil, let named = admitted.named, let destination = admitted.destination
        else { return }
        for field in head.fields where field.known == .destination && !field.isHopByHop {
            guard rule.covers(destinationField: bytes[field.value], named, destination) else {
                throw Problem(.destinationNotCovered)
            }
        }
    }

    private static func hasField(
        _ head: RequestHead, _ bytes: Span<UInt8>, where isOverride: (Span<UInt8>) -> Bool
    ) -> Bool {
        head.fields.contains { $0.known == .other && !$0.isHopByHop && isOverride(bytes[$0.name]) }
    }
}
