internal import DataStore
internal import Foundation
internal import Multicast
internal import Repository
internal import Synchronization

/// A command that performs numbered mutations, called steps, in several lanes.
///
/// Several processes with one store run the command at the same time, each as a different writer. A process prints
/// `durable LANE NUMBER` when a step is durable, and `ended LANE NUMBER RESULT` when `perform` has returned or thrown.
extension TestChild {
  private typealias StepsRepository = SyncedRepository<StepsSource>

  private struct StepsSource: MutableSource {
    let server: StepsServer
    let name = "steps"

    static var empty: Steps? { Steps() }

    func fetch(_ key: String) async -> Steps { Steps(last: await server.lastSteps(in: key)) }

    func send(_ mutation: Step, to key: String, id: MutationID) async -> MutationReply<Steps> {
      await server.take(mutation, key, id)
    }

    func disposition(of failure: Never) -> FailureDisposition {}
  }

  private static let lanes = ["0", "1", "2", "3"]

  /// Performs steps in all lanes until standard input ends, and then waits until the lanes agree with the server's.
  ///
  /// Prints `agrees LANE` for each lane, once no step of any process is pending and the repository shows the server's
  /// steps of the lane.
  static func takeSteps(as writer: String, in place: URL) async throws {
    let server = StepsServer(beside: place)
    let repository = StepsRepository(StepsSource(server: server), store: open(place))
    let inputEnd = InputEnd()
    await withTaskGroup { group in
      for lane in lanes { group.addTask { await performSteps(as: writer, in: lane, by: repository, until: inputEnd) } }
    }
    try await repository.waitForPendingMutations()
    for lane in lanes {
      // Observes states instead of values, because the confirmation of a step that is already shown sends no new value.
      for await state in repository.states(of: lane) where state.value?.last == (await server.lastSteps(in: lane)) {
        break
      }
      say("agrees \(lane)")
    }
  }

  /// Watches for the end of standard input.
  private final class InputEnd: Sendable {
    private let flag = Atomic(false)

    init() {
      Thread.detachNewThread {
        // The content of the input doesn't matter.
        _ = FileHandle.standardInput.readDataToEndOfFile()
        self.flag.store(true, ordering: .relaxed)
      }
    }

    var hasCome: Bool { flag.load(ordering: .relaxed) }
  }

  /// Performs steps, each as soon as the previous one is durable, with at most four calls in flight.
  private static func performSteps(
    as writer: String, in lane: String, by repository: StepsRepository, until inputEnd: InputEnd
  ) async {
    let events = repository.events.subscribe()
    await withTaskGroup(of: Void.self) { group in
      var number = 0
      while !inputEnd.hasCome {
        number += 1
        if number > 4 { await group.next() }
        group.addTask { [number] in
          let result: String
          do {
            result = "\(try await repository.perform(Step(writer: writer, number: number), on: lane))"
          } catch {
            result = "\(error)"
          }
          say("ended \(lane) \(number) \(result)")
        }
        for await event in events {
          guard case .mutationEnqueued(_, lane) = event else { continue }
          say("durable \(lane) \(number)")
          break
        }
      }
    }
  }
}
