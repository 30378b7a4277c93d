internal import Foundation

/// A measurement of memory in a child process, so that other systems' allocations don't affect it.
///
/// The child process runs this executable with `--child` and the description of the work, and prints its result as
/// JSON.
struct Child: Codable, Sendable {
  enum Work: String, Codable, Sendable {
    case backlog, stalledSubscriber, subscriptions
  }

  let work: Work
  let system: String
  let element: String
  let subscribers: Int
  /// The number of sends, or of cycles in which a subscriber joins and leaves.
  let count: Int

  static let flag = "--child"

  /// Runs the child process and returns its measurement.
  func run() throws -> MemoryGrowth {
    let arguments = [Self.flag, String(decoding: try JSONEncoder().encode(self), as: UTF8.self)]
    let process = Process()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchmarkError.childFailed(arguments: arguments, status: process.terminationStatus)
    }
    return try JSONDecoder().decode(MemoryGrowth.self, from: data)
  }

  /// Performs the work in the child process that ``run()`` started.
  static func perform(_ description: String) async throws {
    let child = try JSONDecoder().decode(Child.self, from: Data(description.utf8))
    let growth =
      switch child.element {
      case ElementName.int.rawValue: try await child.measure(Int.self)
      default: try await child.measure(OwnedElement.self)
      }
    print(String(decoding: try JSONEncoder().encode(growth), as: UTF8.self))
  }

  private func measure<Element: Payload>(_ element: Element.Type) async throws -> MemoryGrowth {
    guard let system = SystemName(rawValue: system) else { throw BenchmarkError.usage("Unknown system \(system).") }
    return switch work {
    case .backlog: try await Backlog<Element>.measure(system, subscribers: subscribers, sends: count)
    case .stalledSubscriber: try await Soak<Element>.measureStalledSubscriber(system, sends: count)
    case .subscriptions: try await Soak<Element>.measureSubscriptions(system, cycles: count)
    }
  }
}
