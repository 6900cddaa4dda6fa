internal import Cryptography
internal import WireText

// Values of fields that hold secrets. What they are put together in is wiped.
extension Secret {
    /// `scheme` and a space in front of it; by itself where there is none.
    package func after(scheme: String) -> Secret { scheme.isEmpty ? self : Secret("\(scheme) ", before: bytes) }

    /// Credentials of HTTP Basic (RFC 7617, section 2), in the bytes that they come in.
    package static func basic(username: Secret, password: Secret) -> Secret {
        var pair = SecretWriter(capacity: username.count + 1 + password.count)
        pair.append(username.bytes)
        pair.append(UInt8(ascii: ":"))
        pair.append(password.bytes)
        return Secret("Basic ", before: Base64.encode(pair.finish()))
    }
}
