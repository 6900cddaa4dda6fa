import CLibcurl
import Glibc

/// libcurl's process-wide state.
enum LibcurlGlobal {
    // A global's initialiser runs once, whichever thread comes first (curl_global_init(3) is not thread-safe before 7.84).
    private static let initialized: Bool = heimdallr_global_init() == CURLE_OK

    static func initialize() {
        precondition(initialized, "libcurl could not be initialised")
    }
}

/// Where this libcurl looks for the system's trust anchors (curl_version_info(3)).
struct SystemTrust: Sendable {
    let bundle: String?
    let directory: String?

    static let current: SystemTrust = {
        LibcurlGlobal.initialize()
        guard let info = unsafe curl_version_info(CURLVERSION_TENTH) else {
            return SystemTrust(bundle: nil, directory: nil)
        }
        let bundle = unsafe info.pointee.cainfo.map { unsafe String(cString: $0) }
        let directory = unsafe info.pointee.capath.map { unsafe String(cString: $0) }
        return SystemTrust(bundle: bundle.flatMap { unsafe access($0, R_OK) == 0 ? $0 : nil }, directory: directory)
    }()
}
