internal import HTTPTypes
internal import Hummingbird

/// `GET /`: the HTML page that shows timelines.
struct PageRoute {
  func add(to router: TimelineRouter) {
    let body = ResponseBody(byteBuffer: ByteBuffer(bytes: PackageResources.page_html))
    router.serve(.get, "/") { _, _ in
      Response(
        status: .ok,
        headers: [
          .contentType: "text/html; charset=utf-8",
          // The page loads nothing from other servers, and shows received data only as text.
          .contentSecurityPolicy:
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
        ],
        body: body)
    }
  }
}
