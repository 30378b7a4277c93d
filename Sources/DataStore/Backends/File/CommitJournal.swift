internal import Foundation

/// The intended changes of a commit of several files.
///
/// A commit writes the journal before it changes the first file, so that an interrupted commit can be finished. The
/// journal lists each ``StagedFile`` with its final name, length and checksum, and each file to remove. The journal is
/// in force once it is durable under ``fileName``. The next process that opens the folder finishes an interrupted
/// commit. That process first makes the journal durable, because the process that wrote the journal may have ended
/// before doing so.
///
/// A loss of power may preserve the journal's name and lose the names of staged files, because neither is durable
/// before the folder is synchronized. Such a journal is incomplete: its commit was not made, and none of its files has
/// changed.
struct CommitJournal: Codable, Equatable {
  /// A staged file, and the name of the file that it creates or replaces.
  struct Replacement: Codable, Equatable {
    let stagedName: String
    let fileName: String
    let size: Int
    let checksum: UInt32

    /// Whether the file holds a value, as opposed to a part or quarantined bytes, to which no stored value refers yet.
    var holdsValue: Bool { !StorePartName.isPart(fileName) && QuarantineName(fileName) == nil }
  }

  static let fileName = ".DataStore-journal"
  private static let currentFormat = 1
  /// The number of hexadecimal digits before the JSON.
  private static let checksumLength = 8

  let format: Int
  let replacements: [Replacement]
  let removals: [String]

  init(replacements: [Replacement], removals: [String]) {
    format = Self.currentFormat
    self.replacements = replacements
    self.removals = removals
  }

  /// The bytes of the journal: a checksum of eight hexadecimal digits, followed by JSON.
  var encoded: Data {
    do {
      let json = try JSONEncoder.withSortedKeys.encode(self)
      return Data(CRC32C.checksum(of: json).hexadecimalDigits.utf8) + json
    } catch {
      // File names and numbers can always be encoded.
      preconditionFailure("A journal could not be encoded: \(error)")
    }
  }

  /// Decodes a journal.
  ///
  /// - Throws: ``Corruption``, with the reason why the bytes aren't a journal that can be finished.
  static func decode(_ bytes: Data) throws(Corruption) -> CommitJournal {
    let json = bytes.dropFirst(checksumLength)
    guard bytes.prefix(checksumLength).elementsEqual(CRC32C.checksum(of: json).hexadecimalDigits.utf8) else {
      throw Corruption(reason: "the checksum is wrong: the bytes were changed or cut off")
    }
    let journal: CommitJournal
    do {
      journal = try JSONDecoder().decode(CommitJournal.self, from: json)
    } catch {
      throw Corruption(reason: String(describing: error))
    }
    guard journal.format == currentFormat else { throw Corruption(reason: "the format \(journal.format) is unknown") }
    // A journal must name only files of the store, because a forged one could otherwise change other files.
    let isValid =
      journal.replacements.allSatisfy { replacement in
        StagedFile.isName(replacement.stagedName)
          && (FileName.isStoreFile(replacement.fileName) || QuarantineName(replacement.fileName) != nil)
      }
      && journal.removals.allSatisfy(FileName.isStoreFile)
    guard isValid else { throw Corruption(reason: "it names files that don't belong to a store") }
    return journal
  }

  /// The reason why a journal can't be finished.
  struct Corruption: Error {
    let reason: String
  }
}

/// The names of the files that hold values and parts of values: `<name>.value`.
enum FileName {
  private static let fileExtension = ".value"

  static func encode(_ name: String) -> String {
    name + fileExtension
  }

  /// Returns the name of the file for bytes that a commit writes, which may be quarantined bytes.
  static func encode(written name: String) -> String {
    QuarantineName(name) == nil ? encode(name) : name
  }

  /// Returns the name of the value that a file holds; `nil` for every other file, such as one that holds a part.
  static func decode(_ fileName: String) -> String? {
    guard fileName.hasSuffix(fileExtension) else { return nil }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName.isEncoded(name) ? name : nil
  }

  /// Returns the name of the value, part or quarantined bytes that a file holds; `nil` for other files.
  static func storedName(of fileName: String) -> String? {
    if isStoreFile(fileName) { return String(fileName.dropLast(fileExtension.count)) }
    return isQuarantined(fileName) ? fileName : nil
  }

  /// Returns whether a file name ends as the names of ``StoreBackend/quarantineName(for:at:attempt:)`` do.
  private static func isQuarantined(_ fileName: String) -> Bool {
    guard let mark = fileName.range(of: StoredItem.quarantineMark, options: .backwards) else { return false }
    return fileName[mark.upperBound...].wholeMatch(of: /\d{8}T\d{6}\.\d{3}Z(-\d+)?/) != nil
  }

  /// Returns whether a file holds a value or a part.
  static func isStoreFile(_ fileName: String) -> Bool {
    guard fileName.hasSuffix(fileExtension) else { return false }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName.isEncoded(name) || StorePartName.isValid(name)
  }
}
