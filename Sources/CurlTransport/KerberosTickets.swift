import CLibgssapi
internal import FileSystem
import Glibc
import HTTPMessage
import Reactor
import Synchronization

/// The distribution's GSS-API and its credential caches, loaded on first use.
private enum GSSAPI {
    /// The functions. Any thread may call them.
    @safe struct Table: @unchecked Sendable {
        let call: heimdallr_gssapi
    }

    private static let loaded = Mutex<Table?>(nil)

    static func load() throws(TransportError) -> Table {
        try loaded.withLock { loaded throws(TransportError) in
            if let loaded { return loaded }
            var functions = heimdallr_gssapi()
            if let missing = unsafe heimdallr_gssapi_load(&functions) {
                let name = unsafe String(cString: missing)
                throw TransportError(
                    .proxy,
                    message: "`auth: negotiate` needs MIT Kerberos, and \(name) is missing: install libgssapi-krb5-2")
            }
            let table = Table(call: functions)
            loaded = table
            return table
        }
    }
}

/// The tickets of one Kerberos identity, in a cache of this process's memory, and tokens made with them (RFC 2743, RFC
/// 4178). The calls wait for the KDC, half a minute and longer. One thread at a time.
final class KerberosTickets: Sendable {
    /// Remaining lifetime of tickets, in seconds, at which they are renewed. Until then the KDC is not asked.
    private static let renewal: UInt32 = 300
    private static let lastNumber = Atomic<Int>(0)

    private let identity: KerberosIdentity
    private let cache: String
    private let stamp = Mutex<FileStamp?>(nil)

    init(_ identity: KerberosIdentity) {
        self.identity = identity
        cache = "MEMORY:heimdallr-\(Self.lastNumber.add(1, ordering: .relaxed).newValue)"
    }

    /// Makes a token for the proxy on this host. It serves once.
    func token(for host: String) throws(TransportError) -> [UInt8] {
        let library = try GSSAPI.load()
        if let keytab = identity.keytab {
            let now = FileStamp(keytab)
            if let before = stamp.withLock({ $0 }), before != now { try forget() }
            stamp.withLock { $0 = now }
            guard FileSystem.isReadable(keytab) else {
                throw TransportError(.proxy, message: "the keytab \(keytab) can't be read")
            }
        }
        var credential = unsafe try? acquire(library, heimdallr_gss_spnego, from: "MEMORY:none")
        defer { unsafe release(library, credential?.handle) }
        if unsafe (credential?.lifetime ?? 0) < Self.renewal, let keytab = identity.keytab {
            // SPNEGO does not say why it has no credential. Kerberos says it, and leaves its tickets in the cache.
            let renewed = try unsafe acquire(library, heimdallr_gss_krb5, from: keytab)
            unsafe release(library, renewed.handle)
            unsafe release(library, credential?.handle)
            unsafe credential = nil
        }
        if unsafe credential == nil {
            if identity.keytab == nil {
                let found = try unsafe acquire(library, heimdallr_gss_krb5)
                unsafe release(library, found.handle)
            }
            unsafe credential = try unsafe acquire(library, heimdallr_gss_spnego, from: "MEMORY:none")
        }
        return try unsafe context(library, credential?.handle, to: host)
    }

    /// Drops the tickets, for example after the proxy got a new key.
    func forget() throws(TransportError) {
        guard identity.keytab != nil else { return }
        let library = try GSSAPI.load()
        var context: UnsafeMutableRawPointer?
        var handle: UnsafeMutableRawPointer?
        try check(unsafe library.call.krb5_init_context(&context), "krb5_init_context")
        defer { unsafe library.call.krb5_free_context(context) }
        try check(unsafe library.call.krb5_cc_resolve(context, cache, &handle), "krb5_cc_resolve")
        // A cache without tickets can't be destroyed.
        _ = unsafe library.call.krb5_cc_destroy(context, handle)
    }

    // MARK: Calls of GSS-API (RFC 2744)

    /// - Parameter keytab: source of new tickets; `nil` for the tickets of the process's user.
    @unsafe private func acquire(
        _ library: GSSAPI.Table, _ mechanism: heimdallr_gss_oid, from keytab: String? = nil
    ) throws(TransportError) -> (handle: UnsafeMutableRawPointer?, lifetime: UInt32) {
        var minor: UInt32 = 0
        var name: UnsafeMutableRawPointer?
        if let principal = identity.principal {
            unsafe name = try self.name(library, principal, heimdallr_gss_principal)
        }
        defer { unsafe _ = library.call.gss_release_name(&minor, &name) }
        let pairs = identity.keytab == nil ? [] : [("ccache", cache), ("client_keytab", keytab ?? "MEMORY:none")]
        var settings = unsafe pairs.map { unsafe heimdallr_gss_setting(key: strdup($0), value: strdup($1)) }
        defer {
            unsafe settings.forEach { setting in
                unsafe free(UnsafeMutableRawPointer(mutating: setting.key))
                unsafe free(UnsafeMutableRawPointer(mutating: setting.value))
            }
        }
        var mechanism = unsafe mechanism
        var handle: UnsafeMutableRawPointer?
        var lifetime: UInt32 = 0
        let major = unsafe settings.withUnsafeMutableBufferPointer { settings in
            unsafe withUnsafePointer(to: &mechanism) { mechanism in
                var mechanisms = unsafe heimdallr_gss_oids(count: 1, elements: mechanism)
                var store = unsafe heimdallr_gss_settings(
                    count: UInt32(settings.count), elements: UnsafePointer(settings.baseAddress))
                let initiate: Int32 = 1
                return unsafe withUnsafePointer(to: &store) { store in
                    unsafe library.call.gss_acquire_cred_from(
                        &minor, name, .max, &mechanisms, initiate, store.pointee.count == 0 ? nil : store, &handle,
                        nil, &lifetime)
                }
            }
        }
        try check(library, major, minor, "no Kerberos ticket")
        return unsafe (handle, lifetime)
    }

    @unsafe private func context(
        _ library: GSSAPI.Table, _ credential: UnsafeMutableRawPointer?, to host: String
    ) throws(TransportError) -> [UInt8] {
        var minor: UInt32 = 0
        var service = try unsafe name(library, "HTTP@\(host)", heimdallr_gss_service)
        var context: UnsafeMutableRawPointer?
        var token = unsafe heimdallr_gss_buffer()
        var mechanism = unsafe heimdallr_gss_spnego
        defer {
            unsafe _ = library.call.gss_release_buffer(&minor, &token)
            unsafe _ = library.call.gss_delete_sec_context(&minor, &context, nil)
            unsafe _ = library.call.gss_release_name(&minor, &service)
        }
        let major = unsafe library.call.gss_init_sec_context(
            &minor, credential, &context, service, &mechanism, 0, 0, nil, nil, nil, &token, nil, nil)
        try check(library, major, minor, "no Kerberos ticket for HTTP/\(host)")
        return unsafe Array(UnsafeRawBufferPointer(start: token.value, count: token.length))
    }

    @unsafe private func name(
        _ library: GSSAPI.Table, _ text: String, _ form: heimdallr_gss_oid
    ) throws(TransportError) -> UnsafeMutableRawPointer? {
        var form = unsafe form
        var (minor, bytes) = (UInt32(0), Array(text.utf8))
        var name: UnsafeMutableRawPointer?
        let major = unsafe bytes.withUnsafeMutableBytes { bytes in
            var buffer = unsafe heimdallr_gss_buffer(length: bytes.count, value: bytes.baseAddress)
            return unsafe library.call.gss_import_name(&minor, &buffer, &form, &name)
        }
        try check(library, major, minor, "the Kerberos name \(text)")
        return unsafe name
    }

    @unsafe private func release(_ library: GSSAPI.Table, _ credential: UnsafeMutableRawPointer?) {
        var (minor, credential) = (UInt32(0), unsafe credential)
        unsafe _ = library.call.gss_release_cred(&minor, &credential)
    }

    /// Checks a result of GSS-API. The upper half has the errors; the lower half says that the peer should answer.
    private func check(
        _ library: GSSAPI.Table, _ major: UInt32, _ minor: UInt32, _ fault: String
    ) throws(TransportError) {
        guard major & 0xffff_0000 != 0 else { return }
        var (ignored, next, text, kerberos) = unsafe (UInt32(0), UInt32(0), heimdallr_gss_buffer(), heimdallr_gss_krb5)
        defer { unsafe _ = library.call.gss_release_buffer(&ignored, &text) }
        let (code, kind): (UInt32, Int32) = minor == 0 ? (major, 1) : (minor, 2)
        _ = unsafe library.call.gss_display_status(&ignored, code, kind, &kerberos, &next, &text)
        let words = unsafe String(
            decoding: UnsafeRawBufferPointer(start: text.value, count: text.length).prefix { $0 != 0 }, as: UTF8.self)
        throw TransportError(.proxy, message: "\(fault): \(words)")
    }

    /// Checks a result of libkrb5. Only a lack of memory can make it an error.
    private func check(_ code: Int32, _ call: StaticString) throws(TransportError) {
        guard code == 0 else { throw TransportError(.internal, message: "\(call): error \(code)") }
    }
}
