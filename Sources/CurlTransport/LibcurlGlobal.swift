import CLibcurl
import Glibc

/// libcurl's process-wide state.
package enum LibcurlGlobal {
    /// Environment variables that make libcurl or OpenSSL write the keys of every TLS connection to a file
    /// (libcurl-env(3)). A reader of that file could decrypt recorded traffic, with all tokens and secrets in it.
    private static let keyLogVariables = ["SSLKEYLOGFILE"]

    /// Names of the key log variables that were set. The first access removes them from the environment, before libcurl
    /// is initialised. unsetenv(3) is safe only while no other thread reads the environment.
    package static let removedVariables: [String] = keyLogVariables.filter { name in
        guard unsafe getenv(name) != nil else { return false }
        return unsafe unsetenv(name) == 0
    }

    // The initialiser of a global runs once for all threads. Before 7.84, curl_global_init(3) is not thread-safe.
    private static let initialized: Bool = {
        _ = removedVariables
        return heimdallr_global_init() == CURLE_OK
    }()

    static func initialize() { precondition(initialized, "libcurl could not be initialised") }
}

/// Paths at which libcurl looks for the system's trust anchors (curl_version_info(3)).
package struct SystemTrust: Sendable {
    /// File of all anchors; `nil` also if this process could not read it at first.
    package let bundle: String?
    /// The same, whether the file can be read or not.
    package let path: String?
    let directory: String?

    package static let current: SystemTrust = {
        LibcurlGlobal.initialize()
        guard let info = unsafe curl_version_info(CURLVERSION_TENTH) else {
            return SystemTrust(bundle: nil, path: nil, directory: nil)
        }
        let bundle = unsafe info.pointee.cainfo.map { unsafe String(cString: $0) }
        let directory = unsafe info.pointee.capath.map { unsafe String(cString: $0) }
        return SystemTrust(
            bundle: bundle.flatMap { unsafe access($0, R_OK) == 0 ? $0 : nil }, path: bundle, directory: directory)
    }()
}
