//go:build !unix

package offheap

import "errors"

func reserve(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func release([]byte) error { return errors.ErrUnsupported }
