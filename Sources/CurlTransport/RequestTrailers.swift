import CLibcurl
import Reactor

extension TransferDelegate {
    /// Most requests have none.
    public func requestTrailers(_ transfer: Transfer) -> [(name: [UInt8], value: [UInt8])] { [] }
}

// Trailers of requests: CURLOPT_TRAILERFUNCTION(3).
extension Transfer {
    /// Has them sent behind the body, which has ended. Called when libcurl asks for more of it: it looks for the option
    /// only once there is none.
    ///
    /// libcurl (seen in 7.88) never takes a handle out of the state it is in after trailers: the next chunked upload on
    /// it would be sent without its framing, from in front of its buffer. The handle must not be used again, so the
    /// option is not set for requests without trailers.
    /// - Returns: false when memory is short.
    func setTrailers(_ fields: [(name: [UInt8], value: [UInt8])]) -> Bool {
        guard !fields.isEmpty else { return true }
        isSpent = true
        for (name, value) in fields {
            // libcurl leaves out what has no space behind the colon.
            let line = name + [UInt8(ascii: ":"), UInt8(ascii: " ")] + value + [0]
            let longer = unsafe line.withUnsafeBytes {
                unsafe curl_slist_append(trailers, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
            }
            guard let longer = unsafe longer else { return false }
            unsafe trailers = longer
        }
        let handle = unsafe easy.pointer
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        return unsafe heimdallr_easy_set_trailer(handle, provideTrailers) == CURLE_OK
            && heimdallr_easy_set_pointer(handle, CURLOPT_TRAILERDATA, userData) == CURLE_OK
    }
}

/// libcurl frees the list.
private func provideTrailers(
    _ list: UnsafeMutablePointer<UnsafeMutablePointer<curl_slist>?>?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let transfer = unsafe Transfer.from(context), let list = unsafe list else { return CURL_TRAILERFUNC_ABORT }
    unsafe list.pointee = unsafe transfer.trailers
    unsafe transfer.trailers = nil
    return CURL_TRAILERFUNC_OK
}
