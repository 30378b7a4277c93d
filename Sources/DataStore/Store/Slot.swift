internal import Foundation

/// An opened key: the key with its encoded name and the topic of its collection.
///
/// Every call for one key opens the key, which validates it and the type of its values.
struct Slot<Value: Codable & Sendable> {
  let key: StoreKey<Value>
  let name: String
  let topic: Topic<Value>

  var id: String? { key.id }

  /// The id in the form in which the stored value contains it; `nil` if the name of the value contains the id.
  var longID: String? { key.keyName.longID(besides: name) }
}

extension Slot {
  /// Reads the stored value.
  ///
  /// The bytes aren't read if the backend's version shows that they are the last known ones, and aren't decoded if they
  /// equal those. Both apply only if the decoded value is in memory or isn't needed.
  ///
  /// - Parameters:
  ///   - backend: The backend that keeps the bytes.
  ///   - needsValue: Whether the value is needed even if the bytes are unchanged.
  func read(
    from backend: inout some StoreBackend, needsValue: Bool
  ) throws(StoreError) -> ReadResult<Value> {
    try read(from: &backend, needsValue: needsValue, isSnapshot: false)
  }

  /// Reads the stored value, and returns ``ReadResult/unreadable(_:)`` for an error that concerns only this key.
  func readEntry(
    from backend: inout some StoreBackend, needsValue: Bool
  ) throws(StoreError) -> ReadResult<Value> {
    do throws(StoreError) {
      return try read(from: &backend, needsValue: needsValue)
    } catch {
      guard error.concernsOneEntry else { throw error }
      return .unreadable(error)
    }
  }

  /// Returns the result that a read would have, without reading any bytes.
  ///
  /// - Returns: `nil` if the value isn't in memory, or if the stored one may differ from it.
  func knownResult(from backend: inout some StoreBackend) throws(StoreError) -> ReadResult<Value>? {
    knownResult(at: try backend.externalVersion(), needsValue: true)
  }

  private func knownResult(at externalVersion: UInt64?, needsValue: Bool) -> ReadResult<Value>? {
    guard let edition = topic.edition(of: id), topic.isCurrent(edition, id, at: externalVersion) else { return nil }
    return topic.knownResult(edition, id, needsValue: needsValue)
  }

  private func read<Backend: StoreBackend>(
    from backend: inout Backend, needsValue: Bool, isSnapshot: Bool
  ) throws(StoreError) -> ReadResult<Value> {
    let externalVersion = try backend.externalVersion()
    if let known = knownResult(at: externalVersion, needsValue: needsValue) { return known }
    guard let bytes = try backend.read(name) else {
      topic.forgetRead(id)
      return .nothing
    }
    let fingerprint = Fingerprint(bytes)
    topic.noteRead(fingerprint, id, at: externalVersion)
    if let edition = topic.edition(of: id), edition.fingerprint == fingerprint,
      let known = topic.knownResult(edition, id, needsValue: needsValue)
    {
      return known
    }
    let format = topic.format
    switch Envelope.open(bytes, schema: format.schema.version) {
    case .future(let version): return .future(version, fingerprint, byteCount: bytes.count)
    case .undecodable(let reason):
      let tag = StoreTag(of: bytes)
      return .unusable(
        UnusableValue(bytes: bytes, fingerprint: fingerprint, tag: tag, reason: .undecodable(reason: reason)))
    case .corrupt(let reason): return .corrupt(bytes: bytes, reason: reason)
    case .value(let header, let body):
      // A short name contains the id, so only the name of a long id leaves it open.
      if let longID, header.longID != longID {
        return .corrupt(bytes: bytes, reason: "the value is that of another id")
      }
      let partIDs = header.partIDs ?? []
      if !partIDs.isEmpty, !isSnapshot {
        // Without a snapshot, another process may replace the value while its parts are read.
        return try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          try read(from: &backend, needsValue: needsValue, isSnapshot: true)
        }
      }
      var parts: [Data] = []
      for partID in partIDs {
        guard PartID.isValid(partID), let part = try backend.read(StorePartName.encode(partID, of: name)),
          PartID.matches(partID, part)
        else {
          return .corrupt(bytes: bytes, reason: "the part \(partID) is missing or was changed")
        }
        parts.append(part)
      }
      let edition = Edition(fingerprint: fingerprint, header: header)
      switch format.decode(header, body: body, parts: parts) {
      case .value(let value, let elementCounts):
        return .value(edition, content(value, elementCounts, bytes, parts))
      case .unusable(let reason):
        return .unusable(UnusableValue(bytes: bytes, fingerprint: fingerprint, tag: header.tag, reason: reason))
      }
    }
  }

  private func content(
    _ value: Value, _ elementCounts: [Int]?, _ bytes: Data, _ parts: [Data]
  ) -> StoredContent<Value> {
    StoredContent(value: value, counts: elementCounts, ownSize: bytes.count, partSizes: parts.map(\.count))
  }
}
