import Foundation
import Testing

@testable import GraphQLClient

struct RedirectPolicyTests {
  private static let httpsURL = "https://api.example/graphql"
  private static let httpURL = "http://api.example/graphql"
  private static let hostsPolicy = RedirectPolicy.hosts(["Other.Example"])

  private static func target(
    _ policy: RedirectPolicy, _ location: String?, from url: String = httpsURL, status: Int = 307
  ) throws -> String? {
    let url = try #require(URL(string: url))
    return policy.target(status: status, location: location, from: url)?.absoluteString
  }

  // MARK: - Statuses

  @Test(arguments: [307, 308])
  func `A redirection that preserves the method is followed`(status: Int) throws {
    #expect(try Self.target(.sameOrigin, "/other", status: status) == "https://api.example/other")
    #expect(
      try Self.target(Self.hostsPolicy, "https://other.example/a", status: status) == "https://other.example/a")
  }

  @Test(arguments: [100, 200, 201, 300, 301, 302, 303, 304, 305, 306, 309, 400, 500])
  func `With a status other than 307 and 308, no location is followed`(status: Int) throws {
    #expect(try Self.target(.sameOrigin, "/other", status: status) == nil)
    #expect(try Self.target(Self.hostsPolicy, "https://other.example/a", status: status) == nil)
  }

  @Test func `A redirection without a location is not followed`() throws {
    #expect(try Self.target(.sameOrigin, nil) == nil)
    #expect(try Self.target(Self.hostsPolicy, nil) == nil)
  }

  // MARK: - Policies

  @Test(arguments: ["/other", "https://api.example/other", "https://other.example/"])
  func `The policy 'never' follows no redirection`(location: String) throws {
    #expect(try Self.target(.never, location) == nil)
  }

  @Test(arguments: [
    ("/other", "https://api.example/other"),
    ("other", "https://api.example/other"),
    ("../other?x=1", "https://api.example/other?x=1"),
    ("?x=1", "https://api.example/graphql?x=1"),
    ("//api.example/other", "https://api.example/other"),
    ("https://api.example/other", "https://api.example/other"),
    ("https://api.example:443/other", "https://api.example:443/other"),
    ("https://api.example:/other", "https://api.example:/other"),
    ("HTTPS://API.Example/Other", "HTTPS://API.Example/Other"),
  ])
  func `Every policy except 'never' follows a redirection to the same origin`(
    location: String, expected: String
  ) throws {
    #expect(try Self.target(.sameOrigin, location) == expected)
    #expect(try Self.target(Self.hostsPolicy, location) == expected)
    #expect(try Self.target(.hosts([]), location) == expected)
    #expect(try Self.target(.never, location) == nil)
  }

  @Test func `An explicit default port is the same as no port`() throws {
    #expect(
      try Self.target(.sameOrigin, "/b", from: "https://api.example:443/a") == "https://api.example:443/b")
    #expect(
      try Self.target(.sameOrigin, "https://api.example/b", from: "https://api.example:443/a")
        == "https://api.example/b")
    #expect(
      try Self.target(.sameOrigin, "http://api.example:80/b", from: Self.httpURL) == "http://api.example:80/b")
    #expect(try Self.target(.sameOrigin, "https://api.example:80/b") == nil)
    #expect(try Self.target(.sameOrigin, "http://api.example:443/b", from: Self.httpURL) == nil)
  }

  @Test(arguments: [
    "https://api.example:8443/", "https://api.example:99999/", "https://api.example:99999999999999999999/",
    "https://other.api.example/", "https://example/", "https://api.example./", "https://other.example/",
    "https://api.example@other.example/",
  ])
  func `The policy 'sameOrigin' follows no redirection to another origin`(location: String) throws {
    #expect(try Self.target(.sameOrigin, location) == nil)
  }

  @Test(arguments: [
    "https://other.example/a", "https://OTHER.example/a", "https://other.example:8443/a",
  ])
  func `A redirection to a listed host is followed on any port, regardless of the case of the host`(location: String)
    throws
  {
    #expect(try Self.target(Self.hostsPolicy, location) == location)
  }

  @Test func `A redirection to a URL with a user is followed only if origin, user and password stay the same`() throws {
    for location in ["https://user@api.example/a", "https://user:word@other.example/a"] {
      #expect(try Self.target(Self.hostsPolicy, location) == nil)
    }
    let urlWithUser = "https://user:word@api.example/graphql"
    #expect(try Self.target(Self.hostsPolicy, "/a", from: urlWithUser) == "https://user:word@api.example/a")
    #expect(try Self.target(Self.hostsPolicy, "https://user:word@other.example/a", from: urlWithUser) == nil)
    #expect(try Self.target(Self.hostsPolicy, "https://user:other@api.example/a", from: urlWithUser) == nil)
    // This location has no user, and its host is listed.
    #expect(
      try Self.target(Self.hostsPolicy, "https://other.example/a", from: urlWithUser) == "https://other.example/a")
  }

  @Test(arguments: [
    "https://third.example/", "https://sub.other.example/", "https://other.example.third.example/",
    "https://other.example@third.example/", "https://api.example:8443/",
  ])
  func `A redirection to another origin is not followed if its host is not listed`(location: String) throws {
    #expect(try Self.target(Self.hostsPolicy, location) == nil)
  }

  @Test func `If the host of the request is listed, a redirection to another port is followed`() throws {
    let policy = RedirectPolicy.hosts(["api.example"])
    #expect(try Self.target(policy, "https://api.example:8443/") == "https://api.example:8443/")
  }

  // MARK: - Schemes

  @Test func `No redirection from https to http is followed`() throws {
    for policy in [.never, .sameOrigin, Self.hostsPolicy, .hosts(["api.example"])] {
      #expect(try Self.target(policy, "http://api.example/") == nil)
      #expect(try Self.target(policy, "http://api.example:443/") == nil)
      #expect(try Self.target(policy, "http://other.example/") == nil)
    }
  }

  @Test func `A redirection from http to another origin, even on https, is followed to a listed host only`() throws {
    #expect(try Self.target(.sameOrigin, Self.httpsURL, from: Self.httpURL) == nil)
    #expect(try Self.target(Self.hostsPolicy, Self.httpsURL, from: Self.httpURL) == nil)
    #expect(try Self.target(.hosts(["api.example"]), Self.httpsURL, from: Self.httpURL) == Self.httpsURL)
    #expect(
      try Self.target(Self.hostsPolicy, "https://other.example/", from: Self.httpURL) == "https://other.example/")
    #expect(try Self.target(Self.hostsPolicy, "http://other.example/", from: Self.httpURL) == "http://other.example/")
  }

  // MARK: - Hostile locations

  @Test(arguments: [
    "", "//%00/", "http://[::1", "javascript:1", "//[fe80::1%25eth0]/", "//[fe80::1]/", "https:///a", "https:a", "//",
    "http://", "data:,a", "file:///etc/passwd", "ftp://api.example/", "https://api.example:-1/",
    "https://api.example\u{0}.third.example/", "//\u{202E}elpmaxe.ipa/", "https://third.example\\@a@third.example/",
    "https://api.example\\@third.example/", String(repeating: "https://", count: 10_000), "///third.example/",
    "////third.example/", "//api.example\r\n.third.example/", "https://api.example:443@third.example/",
    "https://third.example#@api.example/",
  ])
  func `A redirection to a hostile location is not followed`(location: String) throws {
    for policy in [.never, .sameOrigin, Self.hostsPolicy, .hosts([""]), .hosts(["api.example"])] {
      for url in [Self.httpsURL, Self.httpURL] {
        #expect(try Self.target(policy, location, from: url) == nil)
      }
    }
  }

  @Test(arguments: [
    ("/a\u{1B}[2J", "https://api.example/a%1B%5B2J"), ("/a\u{0}b", "https://api.example/a%00b"),
    ("/a\r\nHost: third.example", "https://api.example/a%0D%0AHost:%20third.example"),
    ("/\u{202E}", "https://api.example/%E2%80%AE"), ("/\u{2028}", "https://api.example/%E2%80%A8"),
    ("\\\\third.example/", "https://api.example/%5C%5Cthird.example/"),
  ])
  func `Control characters and backslashes in the path of a location are escaped`(
    location: String, expected: String
  ) throws {
    #expect(try Self.target(.sameOrigin, location) == expected)
  }

  @Test func `A request whose scheme is neither http nor https is not redirected`() throws {
    #expect(try Self.target(.sameOrigin, "/other", from: "ftp://api.example/") == nil)
    #expect(try Self.target(Self.hostsPolicy, "https://other.example/", from: "data:,a") == nil)
  }
}
