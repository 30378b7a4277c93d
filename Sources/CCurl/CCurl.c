#include "CCurl.h"

#if defined(__linux__)

#include <dlfcn.h>
#include <string.h>

// From curl.h: the options of an easy handle. Each value is the sum of the option's number and the base of its type: 0
// for a long, 10000 for a pointer, 20000 for a function, 30000 for a curl_off_t.
enum {
  WRITEDATA = 10001,
  URL = 10002,
  ERRORBUFFER = 10010,
  POSTFIELDS = 10015,
  HTTPHEADER = 10023,
  HEADERDATA = 10029,
  CUSTOMREQUEST = 10036,
  NOBODY = 44,
  POST = 47,
  FRESH_CONNECT = 74,
  HTTPGET = 80,
  NOSIGNAL = 99,
  ACCEPT_ENCODING = 10102,
  CONNECTTIMEOUT_MS = 156,
  PROTOCOLS = 181,
  SUPPRESS_CONNECT_HEADERS = 265,
  QUICK_EXIT = 322,
  PREREQDATA = 10313,
  WRITEFUNCTION = 20011,
  HEADERFUNCTION = 20079,
  PREREQFUNCTION = 20312,
  POSTFIELDSIZE_LARGE = 30120,
};
enum { PROTOCOL_HTTP = 1, PROTOCOL_HTTPS = 2 };
enum { INFO_RESPONSE_CODE = 0x200002 };
enum { GLOBAL_DEFAULT = 3 };
enum { PREREQFUNC_OK = 0, PREREQFUNC_ABORT = 1 };
enum { MESSAGE_DONE = 1 };

// From multi.h.
typedef struct {
  int message;
  CCurlEasy *easy;
  union {
    void *anything;
    int result;
  } data;
} Message;

// From curl.h: the first members of curl_version_info_data, which are the same in all versions.
typedef struct {
  int age;
  const char *version;
  unsigned int number;
} VersionInfo;

static struct {
  int (*global_init)(long);
  VersionInfo *(*version_info)(int);
  CCurlEasy *(*easy_init)(void);
  void (*easy_cleanup)(CCurlEasy *);
  int (*easy_setopt)(CCurlEasy *, int, ...);
  int (*easy_getinfo)(CCurlEasy *, int, ...);
  CCurlList *(*slist_append)(CCurlList *, const char *);
  void (*slist_free_all)(CCurlList *);
  CCurlMulti *(*multi_init)(void);
  int (*multi_cleanup)(CCurlMulti *);
  int (*multi_add_handle)(CCurlMulti *, CCurlEasy *);
  int (*multi_remove_handle)(CCurlMulti *, CCurlEasy *);
  int (*multi_perform)(CCurlMulti *, int *);
  int (*multi_poll)(CCurlMulti *, void *, unsigned int, int, int *);
  int (*multi_wakeup)(CCurlMulti *);
  Message *(*multi_info_read)(CCurlMulti *, int *);
} curl;

bool CCurlOpen(void) {
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
#define FIND(name) \
  if (!(*(void **)&curl.name = dlsym(library, "curl_" #name))) return false
  FIND(global_init);
  FIND(version_info);
  FIND(easy_init);
  FIND(easy_cleanup);
  FIND(easy_setopt);
  FIND(easy_getinfo);
  FIND(slist_append);
  FIND(slist_free_all);
  FIND(multi_init);
  FIND(multi_cleanup);
  FIND(multi_add_handle);
  FIND(multi_remove_handle);
  FIND(multi_perform);
  FIND(multi_poll);
  FIND(multi_wakeup);
  FIND(multi_info_read);
#undef FIND
  return curl.global_init(GLOBAL_DEFAULT) == 0;
}

const char *CCurlVersion(void) { return curl.version_info(0)->version; }

CCurlEasy *CCurlEasyMake(void) { return curl.easy_init(); }
void CCurlEasyFree(CCurlEasy *easy) { curl.easy_cleanup(easy); }

void CCurlEasySetDefaults(CCurlEasy *easy) {
  curl.easy_setopt(easy, NOSIGNAL, 1L);
  curl.easy_setopt(easy, PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
  curl.easy_setopt(easy, ACCEPT_ENCODING, "");
  curl.easy_setopt(easy, SUPPRESS_CONNECT_HEADERS, 1L);
  // A cancelled transfer does not wait for an unresponsive name server. Older versions ignore the option.
  curl.easy_setopt(easy, QUICK_EXIT, 1L);
}

static int allowFirst(void *count, char *address, char *ownAddress, int port, int ownPort) {
  (void)address, (void)ownAddress, (void)port, (void)ownPort;
  *(int *)count += 1;
  return *(int *)count == 1 ? PREREQFUNC_OK : PREREQFUNC_ABORT;
}

void CCurlEasySendOnce(CCurlEasy *easy, int *count) {
  *count = 0;
  int code = curl.easy_setopt(easy, PREREQDATA, count);
  code |= curl.easy_setopt(easy, PREREQFUNCTION, allowFirst);
  if (code == 0) return;
  // libcurl before 7.80 lacks these options. A request on a new connection is never sent again.
  curl.easy_setopt(easy, FRESH_CONNECT, 1L);
  *count = 1;
}

void CCurlEasySetConnectTimeout(CCurlEasy *easy, long milliseconds) {
  curl.easy_setopt(easy, CONNECTTIMEOUT_MS, milliseconds);
}

bool CCurlEasySetRequest(
    CCurlEasy *easy, const char *url, const char *method, const void *body, long long bodyLength, CCurlList *fields) {
  int code = curl.easy_setopt(easy, URL, url);
  if (body || strcmp(method, "POST") == 0) {
    code |= curl.easy_setopt(easy, POST, 1L);
    code |= curl.easy_setopt(easy, POSTFIELDSIZE_LARGE, bodyLength);
    code |= curl.easy_setopt(easy, POSTFIELDS, body ? body : "");
  } else if (strcmp(method, "HEAD") == 0) {
    code |= curl.easy_setopt(easy, NOBODY, 1L);
  } else {
    code |= curl.easy_setopt(easy, HTTPGET, 1L);
  }
  code |= curl.easy_setopt(easy, CUSTOMREQUEST, method);
  code |= curl.easy_setopt(easy, HTTPHEADER, fields);
  return code == 0;
}

void CCurlEasySetCallbacks(CCurlEasy *easy, CCurlDataCallback header, CCurlDataCallback body, void *context) {
  curl.easy_setopt(easy, HEADERFUNCTION, header);
  curl.easy_setopt(easy, HEADERDATA, context);
  curl.easy_setopt(easy, WRITEFUNCTION, body);
  curl.easy_setopt(easy, WRITEDATA, context);
}

void CCurlEasySetErrorBuffer(CCurlEasy *easy, char *buffer) {
  buffer[0] = 0;
  curl.easy_setopt(easy, ERRORBUFFER, buffer);
}

long CCurlEasyStatus(CCurlEasy *easy) {
  long status = 0;
  curl.easy_getinfo(easy, INFO_RESPONSE_CODE, &status);
  return status;
}

CCurlList *CCurlListAppend(CCurlList *list, const char *field) { return curl.slist_append(list, field); }
void CCurlListFree(CCurlList *list) { curl.slist_free_all(list); }

CCurlMulti *CCurlMultiMake(void) { return curl.multi_init(); }
void CCurlMultiFree(CCurlMulti *multi) { curl.multi_cleanup(multi); }
bool CCurlMultiAdd(CCurlMulti *multi, CCurlEasy *easy) { return curl.multi_add_handle(multi, easy) == 0; }
void CCurlMultiRemove(CCurlMulti *multi, CCurlEasy *easy) { curl.multi_remove_handle(multi, easy); }

int CCurlMultiPerform(CCurlMulti *multi) {
  int running = 0;
  return curl.multi_perform(multi, &running);
}

int CCurlMultiWait(CCurlMulti *multi, int milliseconds) {
  return curl.multi_poll(multi, 0, 0, milliseconds, 0);
}

void CCurlMultiWake(CCurlMulti *multi) { curl.multi_wakeup(multi); }

bool CCurlMultiTakeResult(CCurlMulti *multi, int *result) {
  int rest = 0;
  for (Message *message; (message = curl.multi_info_read(multi, &rest));) {
    if (message->message != MESSAGE_DONE) continue;
    *result = message->data.result;
    return true;
  }
  return false;
}

#else

// On other systems no other function is called.
bool CCurlOpen(void) { return false; }

#endif
