import Foundation
import Multicast
import MulticastTesting
import TestRounds
import TestSupport
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The handling of journals of interrupted commits: intact, corrupt and hostile ones.
@Suite struct JournalRotTests {
  private let temporary = TemporaryFolder(inMemory: true)
  private var folder: URL { temporary.url.appending(path: "store", directoryHint: .isDirectory) }
  private var journal: URL { folder.appending(path: CommitJournal.fileName) }
  private var outside: URL { temporary.url.appending(path: "outside", directoryHint: .isDirectory) }

  // MARK: - The interrupted commit

  /// The number of the interrupted commit.
  ///
  /// The commit changes a partitioned value, saves another value, and removes a third one.
  private static let interruptedNumber = 13

  /// A folder with an interrupted commit: the journal is in force, and none of the staged files has its final name.
  private struct InterruptedCommit {
    var files: [String: Data]
    let stateBefore: NumberedCommits.State
    let stateAfter: NumberedCommits.State

    var journal: Data { files[CommitJournal.fileName]! }

    var decodedJournal: CommitJournal {
      get throws { try CommitJournal.decode(journal) }
    }
  }

  /// Files that don't belong to a store, although some of their names resemble those of a store's files.
  private static let foreignFiles: [String: Data] = Dictionary(
    uniqueKeysWithValues: [
      "notes.txt", "numbers.0.value.bak", "numbers.0+", "a+", "Numbers.0.value", ".DataStore-notes", ".DataStore-g-1",
      ".DataStore-1-a", ".DataStore-journal.txt",
    ].map { ($0, Data($0.utf8)) })

  /// Makes commits in the folder, and interrupts the last one.
  private func interruptCommit() async throws -> InterruptedCommit {
    var progress = CommitProgress(.mixed)
    let fileSystem = FileSystem { $0.operation == "rename" && $0.path.hasSuffix(".value") ? EIO : nil }
    let store = FileStore(folder: folder)
    for _ in 1..<Self.interruptedNumber {
      progress.advance()
      try await NumberedCommits.mixed.make(progress.number, in: store)
    }
    let stateBefore = progress.state
    // The commit can't rename its staged files, but doesn't throw, because its journal is in force. It has a store
    // object of its own, which isn't used again and so doesn't finish the commit.
    try await NumberedCommits.mixed.make(Self.interruptedNumber, in: FileStore(folder: folder, fileSystem: fileSystem))
    progress.advance()
    var files: [String: Data] = [:]
    for name in try contents(of: folder) { files[name] = try Data(contentsOf: folder.appending(path: name)) }
    let interrupted = InterruptedCommit(files: files, stateBefore: stateBefore, stateAfter: progress.state)
    #expect(try interrupted.decodedJournal.replacements.count == 3)
    #expect(try interrupted.decodedJournal.removals.count == 2)
    return interrupted
  }

  /// Creates the folder again with the given files, and adds foreign files in it and beside it.
  private func makeFolder(with files: [String: Data]) throws {
    let manager = FileManager.default
    if manager.fileExists(atPath: path(folder)) { try manager.removeItem(at: folder) }
    try manager.createDirectory(at: folder.appending(path: "folder.d"), withIntermediateDirectories: true)
    try manager.createDirectory(at: outside, withIntermediateDirectories: true)
    for (name, bytes) in files.merging(Self.foreignFiles, uniquingKeysWith: { own, _ in own }) {
      try bytes.write(to: folder.appending(path: name))
    }
    for foreignFolder in [outside, folder.appending(path: "folder.d")] {
      try Data("foreign".utf8).write(to: foreignFolder.appending(path: "inner.value"))
    }
  }

  /// The way in which a new store handles a journal.
  private enum Outcome: Equatable {
    case finished
    case dropped
    case quarantined
  }

  /// Reads the folder with a new store, then makes a commit and a save in it.
  ///
  /// - Returns: The way in which the store has handled the journal.
  /// - Throws: A ``Problem`` if the store has done anything else with the journal or its commit, has lost a later
  ///   commit, or has changed a foreign file or left other files.
  private func recover(_ interrupted: InterruptedCommit, loadsFirst: Bool) async throws -> Outcome {
    var store: FileStore? = FileStore(folder: folder)
    let events = store!.events.subscribe()
    let found = try await NumberedCommits.read(store!, observing: !loadsFirst)
    let foundAgain = try await NumberedCommits.read(store!, observing: loadsFirst)
    guard found == foundAgain else { throw Problem.readsDiffer(found, foundAgain) }
    var outcome: Outcome
    switch found {
    case interrupted.stateAfter: outcome = .finished
    case interrupted.stateBefore: outcome = .dropped
    default: throw Problem.commitIsPartial(found)
    }
    if try contents(of: folder).contains(CommitJournal.fileName) { throw Problem.journalStays }
    var expected = found
    // A commit of several changes, and a save.
    for number in [16, 19] {
      try await NumberedCommits.mixed.make(number, in: store!)
      NumberedCommits.mixed.apply(number, to: &expected)
    }
    let foundByNewStore = try await NumberedCommits.observe(FileStore(folder: folder))
    guard foundByNewStore == expected else { throw Problem.nextCommitsLost(foundByNewStore) }
    // Releasing the store ends the stream of its events.
    store = nil
    for await event in events {
      // Other tests may have exhausted the inotify instances of the user.
      if case .watchingFailed = event { continue }
      guard case .journalQuarantined(let movedTo, _) = event, outcome == .dropped else {
        throw Problem.unexpectedEvent(event)
      }
      outcome = .quarantined
      let name = URL(filePath: movedTo).lastPathComponent
      guard name.hasPrefix(CommitJournal.fileName + ".corrupt-"), try contents(of: folder).contains(name) else {
        throw Problem.unexpectedEvent(event)
      }
    }
    try checkFilesLeft()
    return outcome
  }

  /// Checks that the foreign files and folders are unchanged, and that the store has left no temporary files.
  private func checkFilesLeft() throws {
    for (name, bytes) in Self.foreignFiles {
      guard try Data(contentsOf: folder.appending(path: name)) == bytes else { throw Problem.foreignItemChanged(name) }
    }
    for foreignFolder in [outside, folder.appending(path: "folder.d")] {
      guard try contents(of: foreignFolder) == ["inner.value"],
        try Data(contentsOf: foreignFolder.appending(path: "inner.value")) == Data("foreign".utf8)
      else { throw Problem.foreignItemChanged(path(foreignFolder)) }
    }
    let others = try contents(of: folder).filter {
      Self.foreignFiles[$0] == nil && FileName.decode($0) == nil && !FileName.isStoreFile($0)
        && !$0.hasPrefix(CommitJournal.fileName + ".corrupt-") && $0 != "folder.d"
    }
    guard others.isEmpty else { throw Problem.otherFilesLeft(others) }
  }

  private enum Problem: Error {
    case readsDiffer(NumberedCommits.State, NumberedCommits.State)
    case commitIsPartial(NumberedCommits.State)
    case nextCommitsLost(NumberedCommits.State)
    case journalStays
    case unexpectedEvent(StoreEvent)
    case foreignItemChanged(String)
    case otherFilesLeft([String])
    case otherBytesQuarantined
    case unexpectedOutcome(Outcome)
  }

  // MARK: - Rot

  @Test func `A journal with bit rot is quarantined, and none of its changes is made`() async throws {
    let rounds = Rounds.count(30, full: 2_000)
    let seed = Rounds.fixedSeed ?? .random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    let interrupted = try await interruptCommit()
    for round in 1...rounds {
      let rotten = rottenCopy(of: interrupted.journal, using: &random)
      try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: rotten]) { $1 })
      do {
        let outcome = try await recover(interrupted, loadsFirst: round.isMultiple(of: 2))
        guard outcome == .quarantined else { throw Problem.unexpectedOutcome(outcome) }
        let names = try contents(of: folder).filter { $0.hasPrefix(CommitJournal.fileName + ".corrupt-") }
        guard names.count == 1, try Data(contentsOf: folder.appending(path: names[0])) == rotten else {
          throw Problem.otherBytesQuarantined
        }
      } catch {
        let text = String(decoding: rotten, as: UTF8.self)
        Issue.record("\(error) in round \(round) of MOMENTS_SEED=\(seed), with the bytes \(text)")
        return
      }
    }
  }

  /// Returns a corrupt copy of a journal's bytes, which always differs from them.
  private func rottenCopy(of bytes: Data, using random: inout SplitMix64) -> Data {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))
    case 1:
      return bytes
        + Data((0...Int.random(in: 0..<9, using: &random)).map { _ in .random(in: 0...255, using: &random) })
    case 2:
      var rotten = bytes
      let start = Int.random(in: 0..<bytes.count, using: &random)
      for index in start..<min(start + Int.random(in: 1...64, using: &random), bytes.count) {
        rotten[index] = .random(in: 0...255, using: &random)
      }
      return rotten == bytes ? bytes.dropLast() : rotten
    case 3:
      // Only the name of a field is wrong: the checksum, which replaces the old one in the first eight bytes, is right.
      let fields = ["format", "replacements", "removals", "stagedName", "fileName", "size", "checksum"]
      let field = fields.randomElement(using: &random)!
      let text = String(decoding: bytes.dropFirst(8), as: UTF8.self)
      return sealed(text.replacing("\"\(field)\":", with: "\"\(field.dropLast())\":", maxReplacements: 1))
    default:
      var rotten = bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        rotten[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      }
      return rotten == bytes ? bytes.dropLast() : rotten
    }
  }

  @Test func `A commit that was interrupted at any rename is finished completely`() async throws {
    let interrupted = try await interruptCommit()
    let replacements = try interrupted.decodedJournal.replacements
    for renameCount in 0...replacements.count {
      var files = interrupted.files
      for replacement in replacements[..<renameCount] {
        files[replacement.fileName] = files.removeValue(forKey: replacement.stagedName)
      }
      for loadsFirst in [true, false] {
        try makeFolder(with: files)
        #expect(try await recover(interrupted, loadsFirst: loadsFirst) == .finished, "after \(renameCount) renames")
      }
    }
  }

  @Test func `A commit that has lost any of its staged files is dropped completely`() async throws {
    let interrupted = try await interruptCommit()
    for replacement in try interrupted.decodedJournal.replacements {
      var files = interrupted.files
      files[replacement.stagedName] = nil
      for loadsFirst in [true, false] {
        try makeFolder(with: files)
        #expect(try await recover(interrupted, loadsFirst: loadsFirst) == .dropped, "\(replacement)")
      }
    }
  }

  // MARK: - Hostile journals

  @Test(arguments: [
    "../outside/inner.value", "/tmp/inner.value", "folder.d/inner.value", "..", ".", "", "notes.txt", ".value",
    "numbers.0+", "a+\u{0}.value", "numbers.0+\u{0}.value", "numbers.0\u{0}.value", "numbers.0+/../notes.value",
    "folder.d+/\u{301}inner.value", "Numbers.0.value", "numbers.0.value/", "numbers.0.value.bak", ".DataStore-notes",
    ".DataStore-journal.corrupt-20201116T100920.000Z", "folder.d/a.corrupt-20201116T100920.000Z",
    "../a.corrupt-20201116T100920.000Z", "A.corrupt-20201116T100920.000Z", "a.corrupt-20201116T100920.000Z/b",
    "a.corrupt-notes.txt", ".DataStore-journal", "a+\u{301}.value", "numbers.0+0123456789abcdef0.value",
    "numbers.0+0123456789ABCDEF.value",
  ])
  func `A journal that names files other than a store's is quarantined, and changes no file`(
    name: String
  ) async throws {
    let interrupted = try await interruptCommit()
    let decodedJournal = try interrupted.decodedJournal
    for isReplacement in [true, false] {
      var (replacements, removals) = (decodedJournal.replacements, decodedJournal.removals)
      if isReplacement {
        let first = replacements.removeFirst()
        replacements.append(
          CommitJournal.Replacement(
            stagedName: first.stagedName, fileName: name, size: first.size, checksum: first.checksum))
      } else {
        removals.append(name)
      }
      let hostile = CommitJournal(replacements: replacements, removals: removals)
      try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: hostile.encoded]) { $1 })
      #expect(try await recover(interrupted, loadsFirst: isReplacement) == .quarantined)
    }
  }

  @Test(arguments: [
    "../outside/inner.value", "folder.d", "notes.txt", "numbers.0.value", ".DataStore-", ".DataStore-notes",
    ".DataStore-g-1", ".DataStore-1-a", ".DataStore-1-", ".DataStore-1-1/", ".DataStore-1-1/../notes.txt",
    ".DataStore-1-1\u{0}", ".DataStore-journal", "",
  ])
  func `A journal that takes bytes from files other than staged ones is quarantined`(name: String) async throws {
    let interrupted = try await interruptCommit()
    let decodedJournal = try interrupted.decodedJournal
    let first = decodedJournal.replacements[0]
    let replacement = CommitJournal.Replacement(
      stagedName: name, fileName: first.fileName, size: first.size, checksum: first.checksum)
    let hostile = CommitJournal(
      replacements: decodedJournal.replacements.dropFirst() + [replacement], removals: decodedJournal.removals)
    try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: hostile.encoded]) { $1 })
    #expect(try await recover(interrupted, loadsFirst: true) == .quarantined)
  }

  @Test(arguments: [
    "null", "[]", "{}", "1", "", "{", #"{"format":1}"#, #"{"format":2,"removals":[],"replacements":[]}"#,
    #"{"format":-1,"removals":[],"replacements":[]}"#, #"{"format":1e999,"removals":[],"replacements":[]}"#,
    #"{"format":1,"removals":[null],"replacements":[]}"#, #"{"format":1,"removals":{},"replacements":[]}"#,
    #"{"format":1,"removals":[],"replacements":[{"checksum":4294967296,"fileName":"a.value","size":0,"stagedName":".DataStore-1-1"}]}"#,
    #"{"format":1,"removals":[],"replacements":[{"checksum":0,"fileName":"a.value","size":1e300,"stagedName":".DataStore-1-1"}]}"#,
    String(repeating: "[", count: 200_000),
  ])
  func `Text that isn't a journal is quarantined, even with the right checksum`(text: String) async throws {
    let interrupted = try await interruptCommit()
    try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: sealed(text)]) { $1 })
    #expect(try await recover(interrupted, loadsFirst: false) == .quarantined)
  }

  @Test func `A journal with huge sizes or very many files is handled like any other`() async throws {
    let interrupted = try await interruptCommit()
    let decodedJournal = try interrupted.decodedJournal
    // The sizes and checksums matter only for files that no longer have their staged names.
    let huge = CommitJournal(
      replacements: decodedJournal.replacements.map {
        CommitJournal.Replacement(stagedName: $0.stagedName, fileName: $0.fileName, size: .max, checksum: .max)
      }, removals: decodedJournal.removals)
    try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: huge.encoded]) { $1 })
    #expect(try await recover(interrupted, loadsFirst: true) == .finished)

    let long = CommitJournal(
      replacements: decodedJournal.replacements
        + (0..<10_000).map {
          CommitJournal.Replacement(stagedName: ".DataStore-0-\($0)", fileName: "a\($0).value", size: .min, checksum: 0)
        }, removals: (0..<10_000).map { "b\($0).value" })
    try makeFolder(with: interrupted.files.merging([CommitJournal.fileName: long.encoded]) { $1 })
    // The additional files don't exist, so the commit is incomplete.
    #expect(try await recover(interrupted, loadsFirst: true) == .dropped)
  }

  /// A directory entry that has the name of one of the store's files, but that the store can't use.
  enum Obstacle: CaseIterable {
    case folder, nonEmptyFolder, link, danglingLink, pipe, hugeFile

    func create(at url: URL, beside outside: URL) throws {
      let path = url.path(percentEncoded: false)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
      let result: CInt
      switch self {
      case .folder: result = mkdir(path, 0o700)
      case .nonEmptyFolder:
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        try Data().write(to: url.appending(path: "inner.value"))
        result = 0
      case .link: result = symlink(outside.appending(path: "inner.value").path(percentEncoded: false), path)
      case .danglingLink: result = symlink("/nowhere/at/all", path)
      case .pipe: result = mkfifo(path, 0o600)
      case .hugeFile:
        try Data().write(to: url)
        result = truncate(path, 1 << 40)
      }
      guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    }
  }

  @Test(arguments: Obstacle.allCases)
  func `An entry that has the journal's name and isn't a journal is quarantined`(obstacle: Obstacle) async throws {
    let interrupted = try await interruptCommit()
    var files = interrupted.files
    files[CommitJournal.fileName] = nil
    for loadsFirst in [true, false] {
      try makeFolder(with: files)
      try obstacle.create(at: journal, beside: outside)
      #expect(try await recover(interrupted, loadsFirst: loadsFirst) == .quarantined)
    }
  }

  @Test(arguments: [("open", EACCES), ("open", EPERM), ("open", EIO), ("fstat", EIO), ("read", EIO)])
  func `A journal that can't be read stays in force, and is finished when it can be read`(
    operation: String, code: CInt
  ) async throws {
    let interrupted = try await interruptCommit()
    try makeFolder(with: interrupted.files)
    let fileSystem = FileSystem {
      $0.operation == operation && $0.path.hasSuffix("/\(CommitJournal.fileName)") ? code : nil
    }
    let error = SystemError(code: code, operation: operation, path: path(journal))
    let key = StoreKey<Int>("other")
    for _ in 1...2 {
      let store = FileStore(folder: folder, fileSystem: fileSystem)
      await #expect(throws: StoreError.readFailed(error)) { try await store.load(key) }
      await #expect(throws: StoreError.writeFailed(error)) { try await store.save(1, for: key) }
      await #expect(throws: StoreError.readFailed(error)) { try await NumberedCommits.observe(store) }
    }
    #expect(try Data(contentsOf: journal) == interrupted.journal)
    #expect(try await recover(interrupted, loadsFirst: true) == .finished)
  }

  @Test(arguments: Obstacle.allCases)
  func `A store stays usable if an obstacle has the name of a staged file, or of a file to replace or remove`(
    obstacle: Obstacle
  ) async throws {
    let interrupted = try await interruptCommit()
    let decodedJournal = try interrupted.decodedJournal
    // Only the names of parts contain a `+`, so these files are those of values.
    let replacement = try #require(decodedJournal.replacements.last { !$0.fileName.contains("+") })
    let removal = try #require(decodedJournal.removals.first { !$0.contains("+") })
    for name in [replacement.stagedName, replacement.fileName, removal] {
      // Without the obstacle, a store would finish the commit if all files are staged, and drop it otherwise.
      for areAllStaged in [true, false] {
        try makeFolder(with: interrupted.files)
        if !areAllStaged { try FileManager.default.removeItem(at: folder.appending(path: replacement.stagedName)) }
        try obstacle.create(at: folder.appending(path: name), beside: outside)
        let key = StoreKey<Int>("other")
        for number in 1...2 {
          let store = FileStore(folder: folder)
          try await store.save(number, for: key)
          var batch = StoreBatch()
          batch.save(number, for: key)
          batch.save(number, for: StoreKey("other", id: "second"))
          try await store.commit(batch)
          #expect(try await store.load(key)?.value == number, "\(obstacle) at \(name)")
        }
        try expectUnchangedForeignFiles(besideObstacleAt: name)
      }
    }
  }

  @Test func `A journal stays in force while a rename or a removal fails, and is finished afterwards`() async throws {
    let interrupted = try await interruptCommit()
    let decodedJournal = try interrupted.decodedJournal
    for name in decodedJournal.replacements.map(\.fileName) + decodedJournal.removals {
      try makeFolder(with: interrupted.files)
      let fileSystem = FileSystem {
        ["rename", "unlink"].contains($0.operation) && $0.path.hasSuffix("/\(name)") ? EPERM : nil
      }
      let key = StoreKey<Int>("other")
      for _ in 1...2 {
        let store = FileStore(folder: folder, fileSystem: fileSystem)
        await #expect(throws: StoreError.self, "\(name)") { try await store.load(key) }
        await #expect(throws: StoreError.self, "\(name)") { try await store.save(1, for: key) }
        await #expect(throws: StoreError.self, "\(name)") { try await NumberedCommits.observe(store) }
      }
      #expect(try await recover(interrupted, loadsFirst: true) == .finished, "\(name)")
    }
  }

  private func expectUnchangedForeignFiles(besideObstacleAt obstacle: String) throws {
    for (name, bytes) in Self.foreignFiles {
      #expect(try Data(contentsOf: folder.appending(path: name)) == bytes, "beside \(obstacle)")
    }
    for foreignFolder in [outside, folder.appending(path: "folder.d")] {
      #expect(try contents(of: foreignFolder) == ["inner.value"], "beside \(obstacle)")
      let bytes = try Data(contentsOf: foreignFolder.appending(path: "inner.value"))
      #expect(bytes == Data("foreign".utf8), "beside \(obstacle)")
    }
  }

  // MARK: - Files

  /// Returns the bytes of a text, preceded by its checksum as in a journal.
  private func sealed(_ text: String) -> Data {
    let json = Data(text.utf8)
    return Data(CRC32C.checksum(of: json).hexadecimalDigits.utf8) + json
  }

  private func path(_ url: URL) -> String { url.path(percentEncoded: false) }

  private func contents(of folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(folder))
  }
}
