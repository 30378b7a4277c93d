internal import DataStore

/// Applies the changes that other repositories and processes make to values and mutations.
///
/// A commit that confirms a mutation removes the mutation's record, and usually stores a new value. The store reports
/// the two changes separately. Whichever is reported first is applied together with the other change, which is read
/// from the store.
///
/// ## Changes during a write
/// A write of this repository may take long, because the store doesn't answer. Observers must see the values of other
/// processes meanwhile. But a change that is reported during the write may be the write's own, or may have been made
/// after it. If it were applied before the write has ended, the mutations that the write confirms would be applied to a
/// value that includes them. Such a change is therefore held until the write has ended.
///
/// A change certainly precedes the commit of the write, or the commit fails, if the change has another value than the
/// write, no earlier change is held, and afterwards the records of all mutations that the write confirms are still
/// stored: the store reports changes in order, and the commit removes these records. Such a change is applied at once.
/// The write then fails, because it requires the earlier base, and its replies are judged again.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class SyncExternalChanges<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Value = Source.Value
  typealias Cell = SyncCell<Source>
  typealias Entry = MutationQueue<Source.Key, Source.Mutation>.Entry

  private let store: any KeyValueStore
  private let events: RepositoryEvents

  init(_ store: any KeyValueStore, events: RepositoryEvents) {
    (self.store, self.events) = (store, events)
  }

  /// Returns the stored value; `nil` if there is none, or none that can be decoded.
  func load(
    _ key: StoreKey<Value>, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }

  /// Returns the stored value; `nil` if there is none, or none that this program can read.
  ///
  /// The mutations that a newer program has confirmed with such a value are confirmed nevertheless.
  private func loadIfReadable(
    _ key: StoreKey<Value>, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await load(key)
    } catch {
      switch error {
      case .newerFormat, .migrationFailed: return nil
      default: throw error
      }
    }
  }

  // MARK: - Values

  /// Applies the stored value, if the store hasn't reported it yet.
  func receiveUnreported(_ cell: Cell, in engine: isolated Engine) async {
    do throws(StoreError) {
      guard let stored = try await load(cell.storeKey) else { return }
      await receive(.saved(cell.storeKey, stored), cell.key, in: engine)
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  /// Receives a change of a value that the store reports.
  func receive(_ change: StoreChange<Value>, _ key: Source.Key, in engine: isolated Engine) async {
    while let cell = engine.cell(key), cell.isOpen, cell.state.isNew(change.revision) {
      if cell.state.isWriting, !cell.heldChanges.isEmpty || cell.state.mayBeWritten(change.stored?.value) {
        cell.heldChanges.append(change)
        return
      }
      let writeVersion = cell.state.writeVersion
      // A value that another process stored may include mutations of this repository that the other process has sent.
      // These mutations are removed in the step that applies the value.
      let (finished, stored) = await finishedMutations(of: cell, in: engine)
      let mayIncludeWrite = await mayIncludeWrite(stored, of: cell, in: engine)
      // What was read says nothing about a write that has begun or ended meanwhile.
      if cell.state.writeVersion != writeVersion { continue }
      if mayIncludeWrite {
        cell.heldChanges.append(change)
        return
      }
      cell.receive(change)
      if let stored { cell.receive(.saved(cell.storeKey, stored)) }
      return finish(finished, of: key, in: engine)
    }
  }

  /// Returns whether a write is in progress whose commit may have been made before a value was reported or read.
  ///
  /// - Parameter stored: The value that was read; `nil` if nothing was read or is stored.
  private func mayIncludeWrite(
    _ stored: StoredValue<Value>?, of cell: Cell, in engine: isolated Engine
  ) async -> Bool {
    guard cell.state.isWriting else { return false }
    if !cell.heldChanges.isEmpty || cell.state.mayBeWritten(stored?.value) { return true }
    do throws(StoreError) {
      return try await !engine.performer.records.areStored(cell.state.idsBeingConfirmed)
    } catch {
      return true
    }
  }

  // MARK: - Mutations

  /// Applies a mutation of another repository, if its key is in use and the value doesn't include it yet.
  func show(_ entry: Entry, in engine: isolated Engine) async {
    // A base that is newer than the record may come from the commit that confirmed the mutation and removed the record.
    // The record is therefore checked, and checked again if a newer base arrives meanwhile.
    var checkedRevision = entry.revision
    while let cell = engine.cell(entry.key), cell.isOpen {
      guard let base = cell.state.base, base.revision > checkedRevision else {
        if engine.queue[entry.id] == nil { return }
        cell.restore(entry, isSentHere: engine.queue.sends(entry))
        return engine.publish(cell)
      }
      checkedRevision = base.revision
      if await !finishedMutations(among: [entry.id], in: engine).isEmpty {
        return finish([entry.id], of: entry.key, in: engine)
      }
    }
  }

  /// Returns those of the given mutations whose records another repository or process has removed; none if the records
  /// can't be read.
  func finishedMutations(among ids: [MutationID], in engine: isolated Engine) async -> [MutationID] {
    do throws(StoreError) {
      return try await engine.reader.externallyFinished(ids, in: engine)
    } catch {
      // A mutation stays pending as long as its record can't be read.
      return []
    }
  }

  /// Returns a key's pending mutations whose records another repository or process has removed, and the stored value.
  ///
  /// The value is read after the records, because a value that is read before them may lack a confirmed mutation whose
  /// record is removed in between. If there are no such mutations, no value is read.
  func finishedMutations(
    of cell: Cell, in engine: isolated Engine
  ) async -> (ids: [MutationID], stored: StoredValue<Value>?) {
    do throws(StoreError) {
      let ids = try await engine.reader.externallyFinished(cell.state.pendingIDs, in: engine)
      return ids.isEmpty ? ([], nil) : (ids, try await loadIfReadable(cell.storeKey))
    } catch {
      // A mutation stays pending as long as its record or the value can't be read.
      return ([], nil)
    }
  }

  /// Handles the removal of a mutation's record by another repository or process.
  ///
  /// If the mutation was confirmed, the same commit may have stored a value that includes it. The mutation therefore
  /// stays visible until the stored value can be read.
  func receiveRemoval(of entry: Entry, attempt: Int = 1, in engine: isolated Engine) async {
    while let cell = engine.cell(entry.key), cell.isOpen {
      let writeVersion = cell.state.writeVersion
      let stored: StoredValue<Value>?
      do throws(StoreError) {
        stored = try await loadIfReadable(cell.storeKey)
      } catch {
        events.emit(.storeFailed(error))
        return receiveRemovalLater(of: entry.id, after: attempt, in: engine)
      }
      let mayIncludeWrite = await mayIncludeWrite(stored, of: cell, in: engine)
      guard engine.queue[entry.id] != nil else { return }
      if cell.state.writeVersion != writeVersion { continue }
      if mayIncludeWrite {
        // The base can't be applied now, and the mutation must not disappear before the base is applied.
        cell.heldRemovals.append(entry.id)
        return
      }
      if let stored, cell.state.isNew(stored.revision) { cell.receive(.saved(cell.storeKey, stored)) }
      return finish([entry.id], of: entry.key, in: engine)
    }
    finish([entry.id], of: entry.key, in: engine)
  }

  private func receiveRemovalLater(of id: MutationID, after attempt: Int, in engine: isolated Engine) {
    engine.start { engine in
      await engine.backoff.wait(afterAttempt: attempt)
      if Task.isCancelled { return }
      guard let entry = engine.queue[id] else { return }
      await engine.external.receiveRemoval(of: entry, attempt: attempt + 1, in: engine)
    }
  }

  /// Removes mutations of one key, because another repository or process has removed their records.
  func finish(_ ids: [MutationID], of key: Source.Key, in engine: isolated Engine) {
    engine.removeFromOverlay(ids, of: key)
    engine.reader.finishExternally(ids, in: engine)
  }
}
