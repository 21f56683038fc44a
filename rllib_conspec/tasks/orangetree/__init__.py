"""OrangeTree: take a flat object, wait, and stand on it to pick an orange from the tree."""
