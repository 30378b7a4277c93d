internal import Foundation
internal import GraphQLClient
internal import TestSupport

extension TestChild {
  /// Sends a request that wishes for a reply, by `URLSession`.
  static func askByURLSession(_ address: String, _ script: String) async throws {
    guard let url = URL(string: address) else { fail("\(address) is no address") }
    let wish = ScriptedServer.Wish(try JSONDecoder().decode(ScriptedServer.Script.self, from: Data(script.utf8)))
    let session = APISession(url: url, timeout: .seconds(4), transport: URLSessionTransport())
    say("asking")
    do {
      _ = try await session.post(document: "{ a }", operationName: "", variables: wish, as: [String: Int].self)
    } catch {
      say("\(error)")
    }
  }
}
