#include <sqlite3.h>

/// Lets no trigger run for the statements of a connection.
///
/// The function that this calls has a variable number of parameters, which Swift doesn't import.
static inline int csqlite_disable_triggers(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
