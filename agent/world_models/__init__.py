"""World models: the contract, the simulator as one, files as others, and how names find them."""
