package runner

import (
	"container/list"
	"net/http"
	"sync"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// maxFiles bounds the files of one revision.
const maxFiles = 4096

// store is PUT /revisions/{key}. What does not have the digest that its name says is not kept.
func (r *Runner) store(w http.ResponseWriter, req *http.Request) {
	body, no := r.read(w, req)
	if no != nil {
		r.refuse(w, no.status, no.code, no.message, false)
		return
	}
	var message runnerwire.Revision
	if err := runnerwire.Decode(body, &message); err != nil {
		r.refuse(w, http.StatusBadRequest, string(sallyport.CodeInvalidArgument), "the body is not a revision in JSON", false)
		return
	}
	files := message.Components()
	if fault := filesFault(files); fault != "" {
		r.refuse(w, http.StatusBadRequest, string(sallyport.CodeInvalidArgument), fault, false)
		return
	}
	key := req.PathValue("key")
	if runnerwire.Key(files) != key {
		r.refuse(w, http.StatusUnprocessableEntity, runnerwire.CodeDigestMismatch, "the files are not what the revision's key says", false)
		return
	}
	if !r.cache.keep(key, files) {
		r.refuse(w, http.StatusRequestEntityTooLarge, string(sallyport.CodeSkillTooLarge), "the revision is larger than the runner's cache", false)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// filesFault finds what no revision has.
func filesFault(files []sallyport.Component) string {
	if len(files) > maxFiles {
		return "the revision has too many files"
	}
	for i, f := range files {
		if sallyport.CheckPath(f.Path) != nil {
			return "the revision has a path that is not plain"
		}
		if i > 0 && files[i-1].Path >= f.Path {
			return "the files are not sorted by path, each once"
		}
	}
	return ""
}

// cache keeps revisions in memory, the least recently used one goes first. Their content is never changed, so runs share it.
type cache struct {
	bound int64

	mu      sync.Mutex // guards the fields below
	used    int64
	order   *list.List // of kept, the most recently used in front
	entries map[string]*list.Element
}

type kept struct {
	key   string
	files []sallyport.Component
	bytes int64
}

func newCache(bound int64) *cache {
	return &cache{bound: bound, order: list.New(), entries: map[string]*list.Element{}}
}

func (c *cache) find(key string) ([]sallyport.Component, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.entries[key]
	if !found {
		return nil, false
	}
	c.order.MoveToFront(element)
	entry, _ := element.Value.(kept)
	return entry.files, true
}

// keep reports whether the revision fits at all.
func (c *cache) keep(key string, files []sallyport.Component) bool {
	entry := kept{key: key, files: files}
	for _, f := range files {
		entry.bytes += int64(len(f.Content)+len(f.Path)) + 256
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.entries[key]; found {
		return true
	}
	if entry.bytes > c.bound {
		return false
	}
	for c.used+entry.bytes > c.bound {
		last := c.order.Back()
		old, _ := c.order.Remove(last).(kept)
		delete(c.entries, old.key)
		c.used -= old.bytes
	}
	c.entries[key] = c.order.PushFront(entry)
	c.used += entry.bytes
	return true
}

// recent remembers the last names it was given.
type recent struct {
	mu    sync.Mutex // guards the fields below
	names []string   // a ring
	next  int
	seen  map[string]bool
}

func newRecent(size int) *recent {
	return &recent{names: make([]string, size), seen: map[string]bool{}}
}

// first reports whether name is new, and remembers it.
func (r *recent) first(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[name] {
		return false
	}
	delete(r.seen, r.names[r.next])
	r.names[r.next], r.seen[name] = name, true
	r.next = (r.next + 1) % len(r.names)
	return true
}
