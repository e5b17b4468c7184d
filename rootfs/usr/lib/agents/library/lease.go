package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"agentd/agent"
)

// lease is a worker's claim to a document. Its token is the fence: a worker that was taken for dead, and comes back
// with a result, has the token of a lease that is over.
type lease struct {
	token  string
	worker string
	expiry *time.Timer
}

// Lease waits for work until ctx ends (then nil). A worker has one document at a time: when it asks again, what it had
// goes out again at once, since its earlier life is over.
func (l *Library) Lease(ctx context.Context, worker string) (*Work, error) {
	l.mutex.Lock()
	for _, one := range l.books {
		if one.lease != nil && one.lease.worker == worker {
			agent.Logf(agent.Notice, "%s came back without %s; it goes out again", worker, one.ID)
			l.requeue(one)
		}
	}
	l.mutex.Unlock()
	for {
		l.mutex.Lock()
		work, err := l.grant(worker)
		changed := l.changed
		l.mutex.Unlock()
		if work != nil || err != nil {
			return work, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// grant gives out the first document in the queue, if there is one. The mutex is held.
func (l *Library) grant(worker string) (*Work, error) {
	for len(l.queue) > 0 {
		one := l.books[l.queue[0]]
		if one.Attempts >= l.limits.Attempts {
			if err := l.setAside(one, fmt.Sprintf("no worker finished it in %d attempts", one.Attempts)); err != nil {
				return nil, err
			}
			l.queue = l.queue[1:]
			continue
		}
		text, err := l.store.Text(one.ID)
		if err != nil {
			return nil, err
		}
		// The attempt is on the disk before the work is out: a document that kills everybody is counted, too.
		facts := one.Document
		facts.Attempts++
		if err := l.store.SetFacts(facts); err != nil {
			return nil, err
		}
		token, err := newToken()
		if err != nil {
			return nil, err
		}
		l.queue = l.queue[1:]
		one.Document = facts
		expiry := time.AfterFunc(l.limits.Lease, func() { l.expire(one.ID, token) })
		one.lease = &lease{token: token, worker: worker, expiry: expiry}
		l.announce()
		agent.Logf(agent.Info, "%s goes to %s (attempt %d)", one.ID, worker, one.Attempts)
		return &Work{
			ID: one.ID, Name: one.Name, Text: text, Lease: token,
			Seconds: l.limits.Lease.Seconds(), Attempt: one.Attempts,
		}, nil
	}
	return nil, nil
}

// Renew gives the holder of a lease its full time again.
func (l *Library) Renew(id, token string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one, err := l.holder(id, token)
	if err != nil {
		return err
	}
	// A timer that has fired already waits for the mutex; it must not take the renewed lease away.
	if !one.lease.expiry.Stop() {
		return ErrStale
	}
	one.lease.expiry.Reset(l.limits.Lease)
	return nil
}

// Finish takes the result of the lease's holder.
func (l *Library) Finish(id, token string, summary Summary) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one, err := l.holder(id, token)
	if err != nil {
		return err
	}
	summary.Worker, summary.Finished = one.lease.worker, time.Now().UTC()
	if err := l.store.SetSummary(id, &summary); err != nil {
		return err
	}
	one.release()
	one.summary = &summary
	l.announce()
	l.finished++
	agent.Progress(l.finished)
	return nil
}

// GiveBack takes a document back from a worker that could not do it.
func (l *Library) GiveBack(id, token, reason string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one, err := l.holder(id, token)
	if err != nil {
		return err
	}
	if one.Attempts < l.limits.Attempts {
		l.requeue(one)
		return nil
	}
	if err := l.setAside(one, reason); err != nil {
		return err
	}
	one.release()
	l.announce()
	return nil
}

// holder finds the document and checks the fence. The mutex is held.
func (l *Library) holder(id, token string) (*book, error) {
	one, found := l.books[id]
	if !found {
		return nil, ErrUnknown
	}
	if one.lease == nil || one.lease.token != token {
		return nil, ErrStale
	}
	return one, nil
}

func (l *Library) expire(id, token string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if one, err := l.holder(id, token); err == nil {
		agent.Logf(agent.Warning, "%s did not finish %s in time; it goes out again", one.lease.worker, id)
		l.requeue(one)
	}
}

// requeue ends a lease; the document is the next to go out. The mutex is held.
func (l *Library) requeue(one *book) {
	one.release()
	l.queue = append([]string{one.ID}, l.queue...)
	l.announce()
}

func (l *Library) setAside(one *book, reason string) error {
	facts := one.Document
	facts.Failure = reason
	if err := l.store.SetFacts(facts); err != nil {
		return err
	}
	one.Document = facts
	agent.Logf(agent.Error, "%s (%s) is set aside: %s", one.ID, one.Name, reason)
	return nil
}

func (b *book) release() {
	if b.lease != nil {
		b.lease.expiry.Stop()
		b.lease = nil
	}
}

func newToken() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(random[:]), nil
}
