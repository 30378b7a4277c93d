import Multicast
import Repository
import RepositoryTesting

/// The client of one process, on a network that all processes share.
final class MarksClient: Sendable {
  private struct State {
    var isEnded = false
    var isSignedOut = false
  }

  private enum Answer: Sendable {
    case made(Paged<Mark>)
    case refused, conflict
  }

  private let network: SimulatedNetwork
  private let server: MarksServer
  private let acknowledgement: Acknowledgement
  private let journal: Journal
  private let state = Lock(State())

  init(_ network: SimulatedNetwork, _ server: MarksServer, _ acknowledgement: Acknowledgement, _ journal: Journal) {
    self.network = network
    self.server = server
    self.acknowledgement = acknowledgement
    self.journal = journal
  }

  /// Whether ``send(_:to:id:)`` throws ``MarksFailure/signedOut`` instead of sending a request.
  var isSignedOut: Bool {
    get { state.withLock { $0.isSignedOut } }
    set { state.withLock { $0.isSignedOut = newValue } }
  }

  /// Simulates the end of the process: the client sends no further requests.
  func end() {
    state.withLock { $0.isEnded = true }
  }

  func fetch(_ key: String, after cursor: String?, limit: Int) async throws(MarksFailure) -> Paged<Mark> {
    if state.withLock({ $0.isEnded }) { throw .offline }
    do throws(SimulatedNetwork.Failure) {
      return try await network.exchange("fetch \(key) \(cursor ?? "")") { [server] in
        server.page(of: key, after: cursor, limit: limit)
      }
    } catch {
      throw error == .unreachable ? .offline : .noReply
    }
  }

  func send(
    _ change: MarkChange, to key: String, id: MutationID
  ) async throws(MarksFailure) -> MutationReply<Paged<Mark>> {
    let (isEnded, isSignedOut) = state.withLock { ($0.isEnded, $0.isSignedOut) }
    if isEnded { throw .offline }
    // The journal also checks an attempt that fails because the user is signed out.
    journal.willSend(change, id)
    if isSignedOut { throw .signedOut }
    let answer: Answer
    do throws(SimulatedNetwork.Failure) {
      answer = try await network.exchange("send \(change.mark)") { [server] in
        if change.isRefused { return Answer.refused }
        do throws(MutationConflict) {
          return .made(try server.apply(change, to: key, id: id))
        } catch {
          return .conflict
        }
      }
    } catch {
      throw error == .unreachable ? .offline : .noReply
    }
    switch (answer, acknowledgement) {
    case (.refused, _): throw .refused
    case (.conflict, _): throw .conflict
    case (.made(let value), .value): return .value(value)
    case (.made, .done): return .done
    case (.made, .patch):
      return .patch { value in
        // Unlike `MarkChange.apply(to:)`, the patch always increases the count, so the journal notices if the patch is
        // applied twice.
        if let index = value.elements.firstIndex(where: { $0.id == change.mark }) {
          value.elements[index].count += 1
        } else {
          value.elements.insert(Mark(id: change.mark), at: 0)
        }
      }
    }
  }
}
