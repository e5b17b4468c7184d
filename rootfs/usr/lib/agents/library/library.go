package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"sync"
	"time"

	"agentd/agent"
)

// Library is the documents and who works on which. Its methods may be called from any goroutine.
//
// Always: a document is in exactly one State; one that is Queued is in queue once; only the holder of the current lease
// can hand in a result, so a document that goes out again (its worker died) is still finished once.
type Library struct {
	store  *Store
	limits Limits

	// mutex also covers writes to the disk, so that memory never says more than the disk.
	mutex sync.Mutex
	books map[string]*book
	queue []string
	// changed is closed, and replaced, whenever somebody who waits should look again.
	changed chan struct{}
	// finished counts the results that this process has taken.
	finished uint64
}

// Limits bound what the library takes on.
type Limits struct {
	Documents int
	// Attempts is how many workers may fail or die on a document before it is set aside.
	Attempts int
	Lease    time.Duration
}

// book is a document with its place in the work.
type book struct {
	Document
	summary *Summary
	lease   *lease
}

// OpenLibrary reads the folder; what was with a worker is queued again.
func OpenLibrary(folder string, limits Limits) (*Library, error) {
	store, kept, err := OpenStore(folder)
	if err != nil {
		return nil, err
	}
	library := &Library{
		store: store, limits: limits, books: make(map[string]*book, len(kept)), changed: make(chan struct{}),
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].Added.Before(kept[j].Added) })
	for _, one := range kept {
		added := &book{Document: one.Document, summary: one.Summary}
		library.books[one.ID] = added
		if added.state() == Queued {
			library.queue = append(library.queue, one.ID)
		}
	}
	return library, nil
}

func (b *book) state() State {
	switch {
	case b.summary != nil:
		return Done
	case b.Failure != "":
		return Failed
	case b.lease != nil:
		return Leased
	default:
		return Queued
	}
}

// Add takes a text in and tells whether it is new.
func (l *Library) Add(name, text string) (Document, bool, error) {
	digest := sha256.Sum256([]byte(text))
	id := hex.EncodeToString(digest[:8])
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known, found := l.books[id]; found {
		return known.Document, false, nil
	}
	if len(l.books) >= l.limits.Documents {
		return Document{}, false, ErrFull
	}
	document := Document{ID: id, Name: name, Size: len(text), Added: time.Now().UTC()}
	if err := l.store.Add(document, text); err != nil {
		return Document{}, false, err
	}
	l.books[id] = &book{Document: document}
	l.queue = append(l.queue, id)
	l.announce()
	return document, true, nil
}

// Entry is a document and its state, as lists show it.
type Entry struct {
	Document
	State State `json:"state"`
	// Worker has it now.
	Worker string `json:"worker,omitempty"`
}

func (b *book) entry() Entry {
	entry := Entry{Document: b.Document, State: b.state()}
	if b.lease != nil {
		entry.Worker = b.lease.worker
	}
	return entry
}

// List gives all documents, the oldest first.
func (l *Library) List() []Entry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entries := make([]Entry, 0, len(l.books))
	for _, one := range l.books {
		entries = append(entries, one.entry())
	}
	sort.Slice(entries, func(i, j int) bool {
		if !entries[i].Added.Equal(entries[j].Added) {
			return entries[i].Added.Before(entries[j].Added)
		}
		return entries[i].ID < entries[j].ID
	})
	return entries
}

// Get gives one document.
func (l *Library) Get(id string) (Entry, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one, found := l.books[id]
	if !found {
		return Entry{}, ErrUnknown
	}
	return one.entry(), nil
}

// Text gives a document's text.
func (l *Library) Text(id string) (string, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, found := l.books[id]; !found {
		return "", ErrUnknown
	}
	return l.store.Text(id)
}

// Summary gives a document's state, and its summary once it is done. While ctx lasts it waits for the work to end.
func (l *Library) Summary(ctx context.Context, id string) (State, *Summary, error) {
	for {
		l.mutex.Lock()
		one, found := l.books[id]
		if !found {
			l.mutex.Unlock()
			return "", nil, ErrUnknown
		}
		state, summary, changed := one.state(), one.summary, l.changed
		l.mutex.Unlock()
		if state == Done || state == Failed {
			return state, summary, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, nil, nil
		}
	}
}

// Remove forgets a document; a worker that has it can no longer hand it in.
func (l *Library) Remove(id string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one, found := l.books[id]
	if !found {
		return ErrUnknown
	}
	if err := l.store.Remove(id); err != nil {
		return err
	}
	one.release()
	delete(l.books, id)
	for index, queued := range l.queue {
		if queued == id {
			l.queue = append(l.queue[:index], l.queue[index+1:]...)
			break
		}
	}
	l.announce()
	return nil
}

// Counts gives how many documents are in each state.
func (l *Library) Counts() map[State]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.counts()
}

func (l *Library) counts() map[State]int {
	counts := map[State]int{Queued: 0, Leased: 0, Done: 0, Failed: 0}
	for _, one := range l.books {
		counts[one.state()]++
	}
	return counts
}

// announce wakes all who wait, and tells the manager. The mutex is held.
func (l *Library) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
	counts := l.counts()
	agent.Statusf("%d documents: %d queued, %d in work, %d done, %d failed",
		len(l.books), counts[Queued], counts[Leased], counts[Done], counts[Failed])
}
