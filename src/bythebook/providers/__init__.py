"""The world, behind the ports. Each module translates its vendor's errors into ours."""
