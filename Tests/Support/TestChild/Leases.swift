internal import DataStore
internal import Foundation
internal import Multicast
internal import Repository
internal import Synchronization

/// A command that performs what the lines of its input say, to observe when a process holds the lock of its queue.
///
/// - `perform TEXT KEY` makes a change, by default of the key `a`, and prints `ended TEXT RESULT`. The request of a text that ends in `!` hangs until
///   the line `answer`.
/// - `suspend` suspends the repository, and prints `suspended`.
///
/// The command also prints `durable TEXT` when a change is stored, `sending TEXT` when a request begins, and `released` when the repository gives up the lock.
/// The server is a file with a line `ID TEXT` for each change.
extension TestChild {
  private struct Words: Codable, Hashable, Sendable {
    var words: [String] = []
  }

  private struct Word: RepositoryMutation, Hashable {
    let text: String

    func apply(to value: inout Words) { value.words.append(text) }
  }

  private struct WordsSource: MutableSource {
    let file: URL
    let answers: CurrentValueRelay<Bool>
    let name = "words"

    static var empty: Words? { Words() }

    func fetch(_ key: String) async -> Words { Words() }

    func send(_ mutation: Word, to key: String, id: MutationID) async -> MutationReply<Words> {
      TestChild.say("sending \(mutation.text)")
      if mutation.text.hasSuffix("!") { for await isAnswering in answers.stream where isAnswering { break } }
      let line = Data("\(id) \(mutation.text)\n".utf8)
      guard let handle = FileHandle(forUpdatingAtPath: file.path(percentEncoded: false)) else { fail("no server") }
      let known = String(decoding: handle.readDataToEndOfFile(), as: UTF8.self)
      if !known.contains("\(id) ") { handle.write(line) }
      return .done
    }

    func disposition(of failure: Never) -> FailureDisposition {}
  }

  static func obeyLines(in place: URL) async throws {
    let source = WordsSource(
      file: place.deletingLastPathComponent().appending(path: "server"), answers: CurrentValueRelay(false))
    let repository = SyncedRepository(source, store: open(place))
    let (lines, continuation) = AsyncStream<String>.makeStream()
    Thread.detachNewThread {
      while let line = readLine() { continuation.yield(line) }
      continuation.finish()
    }
    let events = repository.events.subscribe()
    await withTaskGroup { group in
      group.addTask {
        for await event in events {
          switch event {
          case .leadershipReleased: say("released")
          case .mutationEnqueued(let id, _):
            let item = try? await repository.mutations.list().first { $0.id == id }
            if let item { say("durable \(item.mutation.text)") }
          default: break
          }
        }
      }
      for await line in lines {
        let words = line.split(separator: " ").map(String.init)
        switch words[0] {
        case "perform":
          let key = words.count > 2 ? words[2] : "a"
          group.addTask {
            let result: String
            do { result = "\(try await repository.perform(Word(text: words[1]), on: key))" } catch {
              result = "\(error)"
            }
            say("ended \(words[1]) \(result)")
          }
        case "answer": source.answers.send(true)
        case "suspend":
          await repository.suspend()
          say("suspended")
        default: fail("unknown line \(line)")
        }
      }
      group.cancelAll()
    }
  }
}
