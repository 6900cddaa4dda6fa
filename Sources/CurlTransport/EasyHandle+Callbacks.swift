import CLibcurl
import HTTPMessage
import Reactor

// libcurl's calls during a dial.
extension EasyHandle {
    /// Names the one method for a next proxy, so that libcurl sends no password by another one.
    final func setLogin() throws(TransportError) {
        try unsafe set(CURLOPT_HEADERFUNCTION, takeHead, data: CURLOPT_HEADERDATA)
        guard hop.login.answersChallenges else { return }
        try set(CURLOPT_PROXYAUTH, hop.login == .ntlm ? heimdallr_auth_ntlm : heimdallr_auth_digest)
        // Without a tunnel, the body would be sent with each answer to a challenge.
        try set(CURLOPT_HTTPPROXYTUNNEL, 1)
    }

    final func setCallbacks(_ engine: CurlEngine) throws(TransportError) {
        let handle = unsafe easy.pointer
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        try unsafe set(CURLOPT_PRIVATE, pointer: own)
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), CURLOPT_RESOLVER_START_FUNCTION)
        try unsafe set(CURLOPT_RESOLVER_START_DATA, pointer: own)
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), CURLOPT_OPENSOCKETFUNCTION)
        try unsafe set(CURLOPT_OPENSOCKETDATA, pointer: own)
        try check(unsafe heimdallr_easy_set_close(handle, closeSocket), CURLOPT_CLOSESOCKETFUNCTION)
        // libcurl may close a socket after the handle's end.
        try unsafe set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(engine.sockets).toOpaque())
        guard hop.address != nil else { return }
        try set(CURLOPT_NOPROGRESS, 0)
        try check(unsafe heimdallr_easy_set_progress(handle, countStep), CURLOPT_XFERINFOFUNCTION)
        try unsafe set(CURLOPT_XFERINFODATA, pointer: own)
    }

    final func setOpened() throws(TransportError) {
        try check(unsafe heimdallr_easy_set_opened(easy.pointer, socketOpened), CURLOPT_SOCKOPTFUNCTION)
        try unsafe set(CURLOPT_SOCKOPTDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
    }
}

/// Refuses a look-up by libcurl, which already has the addresses of all names. Accepts the call if a host is numeric,
/// because libcurl makes the same call before it reads a numeric address.
private func beforeLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let handle = unsafe EasyHandle.from(context) else { return 1 }
    return handle.hop.hosts(to: handle.origin).contains(where: \.isNumeric) ? 0 : 1
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let handle = unsafe EasyHandle.from(context), let address = unsafe address else {
        return heimdallr_socket_bad
    }
    return handle.open(
        unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address))), family: unsafe address.pointee.family)
}

/// - Parameter context: the `CurlSockets`.
private func closeSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<CurlSockets>.fromOpaque(context).takeUnretainedValue().close(descriptor)
    return 0
}

/// Says whether the socket is connected already. libcurl connects again if a next proxy closes after its challenge.
private func socketOpened(
    _ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ purpose: curlsocktype
) -> Int32 {
    let isConnected = unsafe EasyHandle.from(context)?.approach?.gaveSocket == true
    return isConnected ? heimdallr_already_connected : 0
}

private func countStep(
    _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ uploadTotal: curl_off_t,
    _ uploadNow: curl_off_t
) -> Int32 {
    guard let handle = unsafe EasyHandle.from(context) else { return 1 }
    return handle.dialogue.takesStep(handle.hop.login) ? 0 : 1
}

private func takeHead(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let handle = unsafe EasyHandle.from(context), let bytes = unsafe bytes else { return 0 }
    return unsafe handle.head(UnsafeRawBufferPointer(start: bytes, count: size * count).span8) ? size * count : 0
}
