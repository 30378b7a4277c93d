internal import Foundation
internal import GraphQLClient
internal import TestSupport

extension TestChild {
  /// Sends a request with `URLSession`, and prints the error if the call fails.
  ///
  /// - Parameters:
  ///   - address: The URL of a ``ScriptedServer`` that answers each request with the script in the request.
  ///   - script: The JSON of that script.
  static func askByURLSession(_ address: String, _ script: String) async throws {
    guard let url = URL(string: address) else { fail("\(address) is not a URL") }
    let variables = ScriptedServer.RequestedScript(
      try JSONDecoder().decode(ScriptedServer.Script.self, from: Data(script.utf8)))
    let session = APISession(url: url, timeout: .seconds(4), transport: URLSessionTransport())
    say("asking")
    do {
      _ = try await session.post(document: "{ a }", operationName: "", variables: variables, as: [String: Int].self)
    } catch {
      say("\(error)")
    }
  }
}
